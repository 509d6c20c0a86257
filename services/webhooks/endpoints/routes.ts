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
import type { Db } from '../../../infra/postgres/pool.ts'
import { type AddressRules, createAddressRules } from '../../../infra/safe-http/addresses.ts'
import { iso } from '../../../projections/sessions/decision-shape.ts'
import {
  findEndpoint,
  listEndpoints,
  maxListedEndpoints,
} from '../../../projections/webhooks/queries.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import { loadDeliveries } from '../events/routes.ts'
import { createEndpoint, type EndpointPath, rotateSecret, updateEndpoint } from './commands.ts'
import { endpointFor, noSuchEndpoint } from './decide.ts'
import {
  completeEndpointChanges,
  createEndpointBody,
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

function listRoute(app: FastifyInstance, { pool, auth }: RouteContext): void {
  endpoint(app, {
    route: `GET ${endpointsPath}`,
    auth: auth.requireOwnOrganization('webhooks:read'),
    operationId: 'listWebhookEndpoints',
    tag,
    summary: 'List webhook endpoints',
    description: `Requires the \`webhooks:read\` secret-key scope. Returns up to ${maxListedEndpoints} endpoints of the key's environment on one page, newest first: all active ones and the newest disabled ones. If \`has_more\` is true, older disabled endpoints are not listed.`,
    params: organizationParams,
    before: createOffsetCheck('the list is one page'),
    answers: { 200: list(endpointSchema) },
    errors: [422],
    async run(request) {
      const { rows, hasMore } = await listEndpoints(pool, auth.scope(request))
      const data = rows.map((row) => endpointJson(row))
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
      completeEndpointChanges(fields, rules, 'webhook_endpoint_create')
    }),
    answers: { 201: single(endpointSchema) },
    run(request, { reply, answer }) {
      const scope = auth.scope(request)
      reply.header('cache-control', 'no-store')
      return idempotency.run({ request, reply }, async (command) => {
        const deps = { ...commandDeps(context, request, command), rules }
        const { endpointId, signingSecret } = await createEndpoint(deps, {
          ...request.body,
          ...scope,
        })
        return answer(await responseWithSecret(pool, { ...scope, endpointId }, signingSecret))
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
      completeEndpointChanges(fields, rules)
    }),
    answers: { 200: single(endpointSchema) },
    errors: [404, 409],
    // 404 takes precedence over 422.
    async before(request) {
      endpointFor(await findEndpoint(pool, pathOf(context, request)))
    },
    async run(request) {
      const path = pathOf(context, request)
      await updateEndpoint(
        { ...commandDeps(context, request), rules },
        { ...request.body, ...path },
      )
      return { data: endpointJson(endpointFor(await findEndpoint(pool, path))) }
    },
  })
}

function disableRoute(app: FastifyInstance, context: RouteContext): void {
  const { pool, auth, rules } = context
  endpoint(app, {
    route: `DELETE ${endpointPath}`,
    auth: auth.requireOwnOrganization('webhooks:manage'),
    operationId: 'disableWebhookEndpoint',
    tag,
    summary: 'Disable a webhook endpoint',
    description: `${manages} The endpoint stays in the list and can be enabled again. 409 while an active Gate service sends its approvals there.`,
    params: endpointParams,
    noBody: 'webhook_endpoint_disable',
    answers: { 200: single(endpointSchema) },
    errors: [404, 409],
    async run(request) {
      const path = pathOf(context, request)
      await updateEndpoint(
        { ...commandDeps(context, request), rules },
        { ...path, status: 'disabled' },
      )
      return { data: endpointJson(endpointFor(await findEndpoint(pool, path))) }
    },
  })
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
    noBody: 'webhook_endpoint_rotate',
    answers: { 201: single(endpointSchema) },
    errors: [404],
    run(request, { reply, answer }) {
      const path = pathOf(context, request)
      reply.header('cache-control', 'no-store')
      return idempotency.run({ request, reply }, async (command) => {
        const { signingSecret } = await rotateSecret(commandDeps(context, request, command), path)
        return answer(await responseWithSecret(pool, path, signingSecret))
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
    noBody: 'webhook_endpoint_test',
    answers: { 202: single(testSchema) },
    errors: [404],
    run(request, { reply, answer }) {
      const path = pathOf(context, request)
      return idempotency.run({ request, reply }, async (command) => {
        const { eventId: event_id } = await sendTest(commandDeps(context, request, command), path)
        const deliveries = (await loadDeliveries(pool, [event_id])).get(event_id) ?? []
        const delivery_ids = deliveries.map(({ id }) => id)
        const latest_delivery = deliveries.at(-1) ?? null
        return answer({ data: { object: 'webhook_test', event_id, delivery_ids, latest_delivery } })
      })
    },
  })
}

// 404 for a malformed id.
function pathOf(
  { auth }: RouteContext,
  request: FastifyRequest<{ Params: z.output<typeof endpointParams> }>,
): EndpointPath {
  const { endpointId } = request.params
  if (!isId('we', endpointId)) throw noSuchEndpoint()
  return { ...auth.scope(request), endpointId }
}

async function responseWithSecret(db: Db, path: EndpointPath, signingSecret: string) {
  const endpoint = await findEndpoint(db, path)
  // 503, because the endpoint exists: a repeated command will return it.
  if (!endpoint) throw unavailable(new Error(`the endpoint ${path.endpointId} is not readable`))
  return { data: endpointJson(endpoint, { signingSecret }) }
}

function endpointJson(endpoint: EndpointRow, { signingSecret }: { signingSecret?: string } = {}) {
  const { id, name, url, status, disabled_reason, flagged_reason, event_types } = endpoint
  // The newest secret is the first.
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
    ...(signingSecret !== undefined && { signing_secret: signingSecret }),
    previous_secret_ends_at: previousEnd === null ? null : iso(previousEnd),
    created_at: iso(endpoint.created_at),
    updated_at: iso(endpoint.updated_at),
  }
}
