import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Config } from '../../../infra/config.ts'
import { unavailable } from '../../../infra/errors/errors.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { createOffsetCheck } from '../../../infra/http/pagination.ts'
import { list, organizationParams, single } from '../../../infra/http/schemas.ts'
import { validMembersCheck } from '../../../infra/http/validation.ts'
import { type CommandRouteOptions, commandDeps } from '../../../infra/idempotency/idempotency.ts'
import { isId } from '../../../infra/ids.ts'
import { iso, isoOrNull } from '../../../infra/iso.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { type AddressRules, createAddressRules } from '../../../infra/safe-http/addresses.ts'
import {
  findEndpoint,
  listEndpoints,
  maxListedEndpoints,
  readDeliveryStats,
} from '../../../projections/webhooks/queries.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { EndpointFilter } from '../../../schemas/events.ts'
import { loadDeliveryJson } from '../events/routes.ts'
import { createEndpoint, type EndpointPath, rotateSecret, updateEndpoint } from './commands.ts'
import { noSuchEndpoint, requireEndpoint } from './decide.ts'
import { healthPeriodMs, summarizeHealth } from './delivery-health.ts'
import {
  checkedEndpointChanges,
  createEndpointBody,
  type EndpointChanges,
  endpointParams,
  endpointSchema,
  testSchema,
  updateEndpointBody,
} from './schemas.ts'
import { sendTest } from './send-test.ts'

export interface EndpointRouteOptions extends CommandRouteOptions {
  config: Pick<Config, 'WEBHOOK_ALLOWED_NETWORKS'>
}

type RouteContext = CommandRouteOptions & { rules: AddressRules }
type RequestOfEndpoint = FastifyRequest<{ Params: z.output<typeof endpointParams> }>

const tag = 'Webhooks'
const endpointsPath = '/v1/organizations/:organizationId/webhooks/endpoints'
const endpointPath = `${endpointsPath}/:endpointId` as const
const manages = 'Requires the `webhooks:manage` secret-key scope.'

export function endpointRoutes(app: FastifyInstance, options: EndpointRouteOptions): void {
  const context = { ...options, rules: createAddressRules(options.config.WEBHOOK_ALLOWED_NETWORKS) }
  listRoute(app, context)
  createRoute(app, context)
  updateRoute(app, context)
  disableRoute(app, context)
  rotateRoute(app, context)
  testRoute(app, context)
}

function listRoute(app: FastifyInstance, { pool, auth, clock }: RouteContext): void {
  endpoint(app, {
    route: `GET ${endpointsPath}`,
    auth: auth.requireOwnOrganization('webhooks:read'),
    operationId: 'listWebhookEndpoints',
    tag,
    summary: 'List webhook endpoints',
    description: `Requires the \`webhooks:read\` secret-key scope. Returns up to ${maxListedEndpoints} endpoints of the key's environment on one page, newest first: all active ones and the newest disabled ones. If \`has_more\` is true, older disabled endpoints are not listed.`,
    params: organizationParams,
    beforeValidation: createOffsetCheck('the list is one page'),
    responses: { 200: list(endpointSchema) },
    errors: [422],
    async run(request) {
      const { rows, hasMore } = await listEndpoints(pool, auth.dataScope(request))
      const ids = rows.map(({ id }) => id)
      const stats = await readDeliveryStats(pool, ids, clock() - healthPeriodMs)
      const data = rows.map((row) => {
        const endpointStats = stats.get(row.id)
        const health = endpointStats && summarizeHealth(row, endpointStats)
        return { ...endpointJson(row), health }
      })
      return { data, pagination: { limit: maxListedEndpoints, has_more: hasMore } }
    },
  })
}

function createRoute(app: FastifyInstance, context: RouteContext): void {
  const { pool, auth, idempotency, rules } = context
  endpoint(app, {
    route: `POST ${endpointsPath}`,
    auth: auth.requireOwnOrganization('webhooks:manage'),
    operationId: 'createWebhookEndpoint',
    tag,
    summary: 'Create a webhook endpoint',
    description: `${manages} The endpoint receives the events of the calling key's environment. Store its signing secret, because it is not shown again.`,
    params: organizationParams,
    body: createEndpointBody,
    parameterSet: 'webhook_endpoint_create',
    checkValidMembers: validMembersCheck(z.object(createEndpointBody.shape).partial(), (fields) => {
      checkedEndpointChanges(fields, rules, 'webhook_endpoint_create')
    }),
    responses: { 201: single(endpointSchema) },
    run(request, { reply, toResponse }) {
      const scope = auth.dataScope(request)
      reply.header('cache-control', 'no-store')
      return idempotency.run({ request, reply }, async (command) => {
        const deps = { ...commandDeps(context, request, command), rules }
        const { endpointId, signingSecret } = await createEndpoint(deps, {
          ...request.body,
          ...scope,
        })
        return toResponse(await responseWithSecret(pool, { ...scope, endpointId }, signingSecret))
      })
    },
  })
}

function updateRoute(app: FastifyInstance, context: RouteContext): void {
  const { pool, auth, rules } = context
  endpoint(app, {
    route: `PATCH ${endpointPath}`,
    auth: auth.requireOwnOrganization('webhooks:manage'),
    operationId: 'updateWebhookEndpoint',
    tag,
    summary: 'Update a webhook endpoint',
    description: `${manages} Changes only the members that are sent.`,
    params: endpointParams,
    body: updateEndpointBody,
    parameterSet: 'webhook_endpoint_update',
    checkValidMembers: validMembersCheck(z.object(updateEndpointBody.shape), (fields) => {
      checkedEndpointChanges(fields, rules)
    }),
    responses: { 200: single(endpointSchema) },
    errors: [404, 409],
    // 404 for an unknown endpoint takes precedence over 422 for the body.
    async beforeValidation(request) {
      requireEndpoint(await findEndpoint(pool, requirePath(context, request)))
    },
    run: (request) => change(context, request, request.body),
  })
}

function disableRoute(app: FastifyInstance, context: RouteContext): void {
  const { auth } = context
  endpoint(app, {
    route: `DELETE ${endpointPath}`,
    auth: auth.requireOwnOrganization('webhooks:manage'),
    operationId: 'disableWebhookEndpoint',
    tag,
    summary: 'Disable a webhook endpoint',
    description: `${manages} The endpoint stays in the list and can be enabled again. 409 while an active Gate service sends its approvals there.`,
    params: endpointParams,
    rejectBodyAs: 'webhook_endpoint_disable',
    responses: { 200: single(endpointSchema) },
    errors: [404, 409],
    run: (request) => change(context, request, { status: 'disabled' }),
  })
}

async function change(context: RouteContext, request: RequestOfEndpoint, changes: EndpointChanges) {
  const path = requirePath(context, request)
  const { pool, rules } = context
  await updateEndpoint({ ...commandDeps(context, request), rules }, { ...changes, ...path })
  return { data: endpointJson(requireEndpoint(await findEndpoint(pool, path))) }
}

function rotateRoute(app: FastifyInstance, context: RouteContext): void {
  const { pool, auth, idempotency } = context
  endpoint(app, {
    route: `POST ${endpointPath}/rotations`,
    auth: auth.requireOwnOrganization('webhooks:manage'),
    operationId: 'rotateWebhookEndpointSecret',
    tag,
    summary: 'Rotate a signing secret',
    description: `${manages} Returns the new secret, which is not shown again. Deliveries are also signed with the previous secret for another 24 hours.`,
    params: endpointParams,
    rejectBodyAs: 'webhook_endpoint_rotate',
    responses: { 201: single(endpointSchema) },
    errors: [404],
    run(request, { reply, toResponse }) {
      const path = requirePath(context, request)
      reply.header('cache-control', 'no-store')
      return idempotency.run({ request, reply }, async (command) => {
        const { signingSecret } = await rotateSecret(commandDeps(context, request, command), path)
        return toResponse(await responseWithSecret(pool, path, signingSecret))
      })
    },
  })
}

function testRoute(app: FastifyInstance, context: RouteContext): void {
  const { pool, auth, idempotency } = context
  endpoint(app, {
    route: `POST ${endpointPath}/test`,
    auth: auth.requireOwnOrganization('webhooks:manage'),
    operationId: 'sendTestWebhook',
    tag,
    summary: 'Send a test event',
    description: `${manages} Sends a \`webhook.test\` event, up to ten times per minute and endpoint.`,
    params: endpointParams,
    rejectBodyAs: 'webhook_endpoint_test',
    responses: { 202: single(testSchema) },
    errors: [404],
    run(request, { reply, toResponse }) {
      const path = requirePath(context, request)
      return idempotency.run({ request, reply }, async (command) => {
        const { eventId: event_id } = await sendTest(commandDeps(context, request, command), path)
        const deliveries = (await loadDeliveryJson(pool, [event_id])).get(event_id) ?? []
        const delivery_ids = deliveries.map(({ id }) => id)
        const latest_delivery = deliveries.at(-1) ?? null
        return toResponse({
          data: { object: 'webhook_test', event_id, delivery_ids, latest_delivery },
        })
      })
    },
  })
}

// Throws 404 if the endpoint id is malformed.
function requirePath({ auth }: RouteContext, request: RequestOfEndpoint): EndpointPath {
  const { endpointId } = request.params
  if (!isId('we', endpointId)) throw noSuchEndpoint()
  return { ...auth.dataScope(request), endpointId }
}

async function responseWithSecret(db: Db, path: EndpointPath, signingSecret: string) {
  const endpoint = await findEndpoint(db, path)
  // Retryable, because a repeated command returns the endpoint.
  if (!endpoint) throw unavailable(new Error(`the endpoint ${path.endpointId} is not readable`))
  return { data: endpointJson(endpoint, { signingSecret }) }
}

const withoutNulls = ({ verdicts, min_risk_score }: EndpointFilter) => ({
  ...(verdicts && { verdicts }),
  ...(min_risk_score !== null && { min_risk_score }),
})

function endpointJson(endpoint: EndpointRow, { signingSecret }: { signingSecret?: string } = {}) {
  const { id, name, url, status, disabled_reason, flagged_reason, event_types } = endpoint
  // Secrets are sorted, newest first.
  const previousEnd = endpoint.secrets[1]?.expires_at ?? null
  return {
    object: 'webhook_endpoint',
    id,
    name,
    url,
    status,
    disabled_reason,
    flagged_reason,
    event_types,
    filter: endpoint.filter && withoutNulls(endpoint.filter),
    ...(signingSecret !== undefined && { signing_secret: signingSecret }),
    previous_secret_ends_at: isoOrNull(previousEnd),
    created_at: iso(endpoint.created_at),
    updated_at: iso(endpoint.updated_at),
  }
}
