import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { unavailable } from '../../../infra/errors/errors.ts'
import { refuseBody } from '../../../infra/http/checked-fields.ts'
import { refusingOffset } from '../../../infra/http/pagination.ts'
import { errorResponses, list, organizationParams, single } from '../../../infra/http/schemas.ts'
import { fittingCheck } from '../../../infra/http/validation.ts'
import type { CommandAnswer } from '../../../infra/idempotency/idempotency.ts'
import { isId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { findEndpoint, listEndpoints, maxListedEndpoints } from '../../../projections/webhooks/queries.ts'
import type { DeliveryRow, EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { WebhookContext } from '../context.ts'
import { enqueuePending } from '../dispatch/queue.ts'
import { deliveryJson, loadDeliveries } from '../events/shapes.ts'
import {
  createEndpoint,
  disableEndpoint,
  type EndpointPath,
  rotateSecret,
  updateEndpoint,
} from './commands.ts'
import { endpointFor, noSuchEndpoint } from './decide.ts'
import {
  completeEndpointChanges,
  createEndpointBody,
  type EndpointChanges,
  endpointParams,
  endpointSchema,
  testSchema,
  updateEndpointBody,
} from './schemas.ts'
import { sendTest } from './send-test.ts'

const tags = ['Webhooks']
const security = [{ secretKey: [] }]
const endpointsPath = '/v1/organizations/:organizationId/webhooks/endpoints'

export function endpointRoutes(app: FastifyInstance, context: WebhookContext): void {
  listRoute(app, context)
  createRoute(app, context)
}

function listRoute(app: FastifyInstance, { pool, auth, scopeOf }: WebhookContext): void {
  const schema = {
    operationId: 'listWebhookEndpoints',
    summary: "List the webhook endpoints of the key's environment, newest first, disabled ones too",
    description: `Requires the \`webhooks:read\` secret-key scope. At most ${maxListedEndpoints}: every active one, and the newest of those that are disabled. \`has_more\` says that there are older disabled ones, which no other page has.`,
    tags,
    security,
    params: organizationParams,
    response: { 200: list(endpointSchema), ...errorResponses(401, 403, 422) },
  }
  const hooks = {
    onRequest: auth.requireOwnOrganization('webhooks:read'),
    preValidation: refusingOffset('no offset: the list is one page'),
  }
  app.get<OrganizationParams>(endpointsPath, { schema, ...hooks }, async (request) => {
    const { rows, hasMore } = await listEndpoints(pool, scopeOf(request))
    const data = rows.map((row) => endpointJson(row))
    return {
      data,
      pagination: { limit: maxListedEndpoints, has_more: hasMore },
      meta: { request_id: request.id },
    }
  })
}

function createRoute(app: FastifyInstance, context: WebhookContext): void {
  const { pool, auth, idempotency, depsOf, scopeOf, rules } = context
  const schema = {
    operationId: 'createWebhookEndpoint',
    summary: 'Create a webhook endpoint',
    description:
      "Requires the `webhooks:manage` secret-key scope. The endpoint gets the events of the calling key's environment. Its signing secret is shown this once.",
    tags,
    security,
    params: organizationParams,
    body: createEndpointBody,
    response: { 201: single(endpointSchema), ...errorResponses(400, 401, 403, 409, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('webhooks:manage')
  const config = {
    parameterSet: 'webhook_endpoint_create',
    checkFitting: fittingCheck(z.object(createEndpointBody.shape).partial(), (fields) => {
      completeEndpointChanges(changesOf(fields), rules, 'webhook_endpoint_create')
    }),
  }
  app.post<OrganizationParams & Create>(endpointsPath, { schema, onRequest, config }, (request, reply) => {
    const { event_types: eventTypes, ...body } = request.body
    const scope = scopeOf(request)
    reply.header('cache-control', 'no-store')
    return idempotency.run({ request, reply }, async (command) => {
      const created = await createEndpoint(depsOf(request, command), { ...body, ...scope, eventTypes })
      return revealedAnswer(pool, { ...created, ...scope, requestId: request.id })
    })
  })
}

function changesOf({ event_types: eventTypes, ...fields }: Partial<Update['Body']>): EndpointChanges {
  return { ...fields, eventTypes }
}

interface OrganizationParams {
  Params: z.output<typeof organizationParams>
}

interface Create {
  Body: z.output<typeof createEndpointBody>
}

async function revealedAnswer(
  db: Db,
  { signingSecret, requestId, ...path }: EndpointPath & { signingSecret: string; requestId: string },
): Promise<CommandAnswer> {
  const endpoint = await findEndpoint(db, path)
  // Not a refusal: the endpoint exists, and the same command will show it.
  if (!endpoint) throw unavailable(new Error(`the endpoint ${path.endpointId} is not readable`))
  const data = endpointJson(endpoint, { signingSecret })
  return { status: 201, body: { data, meta: { request_id: requestId } } }
}

const description = 'Requires the `webhooks:manage` secret-key scope.'
const oneEndpointPath = '/v1/organizations/:organizationId/webhooks/endpoints/:endpointId'
const shared = { description, tags, security, params: endpointParams }

export function oneEndpointRoutes(app: FastifyInstance, context: WebhookContext): void {
  updateRoute(app, context)
  disableRoute(app, context)
  rotateRoute(app, context)
  testRoute(app, context)
}

function updateRoute(app: FastifyInstance, context: WebhookContext): void {
  const { pool, auth, depsOf, rules } = context
  const schema = {
    ...shared,
    operationId: 'updateWebhookEndpoint',
    summary: 'Change the name, URL, status or subscriptions of a webhook endpoint',
    body: updateEndpointBody,
    response: { 200: single(endpointSchema), ...errorResponses(400, 401, 403, 404, 409, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('webhooks:manage')
  const config = {
    parameterSet: 'webhook_endpoint_update',
    checkFitting: fittingCheck(z.object(updateEndpointBody.shape), (fields) => {
      completeEndpointChanges(changesOf(fields), rules)
    }),
  }
  // Before the body is validated: an endpoint that cannot be changed is not found, whatever the body says.
  const preValidation = async (request: FastifyRequest<EndpointParams>) => {
    endpointFor(await findEndpoint(pool, endpointPath(context, request)))
  }
  app.patch<EndpointParams & Update>(
    oneEndpointPath,
    { schema, onRequest, preValidation, config },
    async (request) => {
      const endpoint = endpointPath(context, request)
      const { event_types: eventTypes, ...body } = request.body
      await updateEndpoint(depsOf(request), { ...endpoint, ...body, eventTypes })
      return endpointBody(pool, { ...endpoint, requestId: request.id })
    },
  )
}

function disableRoute(app: FastifyInstance, context: WebhookContext): void {
  const { pool, auth, depsOf } = context
  const schema = {
    ...shared,
    operationId: 'disableWebhookEndpoint',
    summary: 'Disable a webhook endpoint; it stays in the list',
    response: { 200: single(endpointSchema), ...errorResponses(400, 401, 403, 404, 409, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('webhooks:manage')
  const preValidation = refuseBody('webhook_endpoint_disable')
  app.delete<EndpointParams>(oneEndpointPath, { schema, onRequest, preValidation }, async (request) => {
    const endpoint = endpointPath(context, request)
    await disableEndpoint(depsOf(request), endpoint)
    return endpointBody(pool, { ...endpoint, requestId: request.id })
  })
}

function rotateRoute(app: FastifyInstance, context: WebhookContext): void {
  const { pool, auth, idempotency, depsOf } = context
  const schema = {
    ...shared,
    operationId: 'rotateWebhookEndpointSecret',
    summary: 'Replace the signing secret; the previous one signs for 24 more hours',
    response: { 201: single(endpointSchema), ...errorResponses(400, 401, 403, 404, 409, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('webhooks:manage')
  const preValidation = refuseBody('webhook_endpoint_rotate')
  app.post<EndpointParams>(
    `${oneEndpointPath}/rotations`,
    { schema, onRequest, preValidation },
    (request, reply) => {
      const endpoint = endpointPath(context, request)
      reply.header('cache-control', 'no-store')
      return idempotency.run({ request, reply }, async (command) => {
        const rotated = await rotateSecret(depsOf(request, command), endpoint)
        return revealedAnswer(pool, { ...rotated, ...endpoint, requestId: request.id })
      })
    },
  )
}

function testRoute(app: FastifyInstance, context: WebhookContext): void {
  const { pool, auth, idempotency, depsOf } = context
  const schema = {
    ...shared,
    operationId: 'sendTestWebhook',
    summary: 'Send a webhook.test event to a webhook endpoint',
    description: `${description} An endpoint can be tested ten times a minute.`,
    response: { 202: single(testSchema), ...errorResponses(400, 401, 403, 404, 409, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('webhooks:manage')
  const preValidation = refuseBody('webhook_endpoint_test')
  app.post<EndpointParams>(
    `${oneEndpointPath}/test`,
    { schema, onRequest, preValidation },
    (request, reply) => {
      const endpoint = endpointPath(context, request)
      return idempotency.run({ request, reply }, async (command) => {
        const { eventId } = await sendTest(depsOf(request, command), endpoint)
        const { of, inFlight } = await loadDeliveries(pool, [eventId])
        const ids = of(eventId).map(({ id }) => id)
        await enqueuePending(pool, ids)
        const data = testJson({ eventId, deliveries: of(eventId), inFlight })
        return { status: 202, body: { data, meta: { request_id: request.id } } }
      })
    },
  )
}

interface EndpointParams {
  Params: z.output<typeof endpointParams>
}

interface Update {
  Body: z.output<typeof updateEndpointBody>
}

function endpointPath({ scopeOf }: WebhookContext, request: FastifyRequest<EndpointParams>): EndpointPath {
  const { endpointId } = request.params
  if (!isId('we', endpointId)) throw noSuchEndpoint()
  return { ...scopeOf(request), endpointId }
}

async function endpointBody(db: Db, { requestId, ...path }: EndpointPath & { requestId: string }) {
  const endpoint = endpointFor(await findEndpoint(db, path))
  return { data: endpointJson(endpoint), meta: { request_id: requestId } }
}

function endpointJson(endpoint: EndpointRow, { signingSecret }: { signingSecret?: string } = {}) {
  const { id, name, url, status, disabled_reason, flagged_reason, event_types } = endpoint
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
    created_at: new Date(endpoint.created_at).toISOString(),
    updated_at: new Date(endpoint.updated_at).toISOString(),
  }
}

interface TestRows {
  eventId: string
  deliveries: DeliveryRow[]
  inFlight: ReadonlySet<string>
}

function testJson({ eventId, deliveries, inFlight }: TestRows) {
  const latest = deliveries.at(-1)
  return {
    object: 'webhook_test',
    event_id: eventId,
    delivery_ids: deliveries.map(({ id }) => id),
    latest_delivery: latest ? deliveryJson(latest, inFlight) : null,
  }
}
