import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { refuseBody } from '../../../infra/http/checked-fields.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import { isId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { findEndpoint } from '../../../projections/webhooks/queries.ts'
import { loadDeliveries } from '../events/load.ts'
import type { WebhookContext } from '../routes.ts'
import { disableEndpoint, type EndpointPath, rotateSecret, updateEndpoint } from './endpoint-commands.ts'
import { revealedAnswer } from './endpoint-routes.ts'
import { endpointFor, noSuchEndpoint } from './endpoint-state.ts'
import { endpointParams, endpointSchema, testSchema, updateEndpointBody } from './schemas.ts'
import { endpointJson, testJson } from './shapes.ts'
import { sendTest } from './test-command.ts'

const tags = ['Webhooks']
const security = [{ secretKey: [] }]
const description = 'Requires the `webhooks:manage` secret-key scope.'
const path = '/v1/organizations/:organizationId/webhooks/endpoints/:endpointId'
const shared = { description, tags, security, params: endpointParams }

/** What is about one endpoint: change, disable, rotate its secret, test it. */
export function oneEndpointRoutes(app: FastifyInstance, context: WebhookContext): void {
  updateRoute(app, context)
  disableRoute(app, context)
  rotateRoute(app, context)
  testRoute(app, context)
}

function updateRoute(app: FastifyInstance, context: WebhookContext): void {
  const { pool, auth, decide, clock, random, rules } = context
  const schema = {
    ...shared,
    operationId: 'updateWebhookEndpoint',
    summary: 'Change the name, URL, status or subscriptions of a webhook endpoint',
    body: updateEndpointBody,
    response: { 200: single(endpointSchema), ...errorResponses(400, 401, 403, 404, 409, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('webhooks:manage')
  const config = { parameterSet: 'webhook_endpoint_update' }
  // Before the body is validated: an endpoint that cannot be changed is not found, whatever the body says.
  const preValidation = async (request: FastifyRequest<Params>) => {
    endpointFor(await findEndpoint(pool, endpointPath(context, request)))
  }
  app.patch<Params & Update>(path, { schema, onRequest, preValidation, config }, async (request) => {
    const endpoint = endpointPath(context, request)
    const { event_types: eventTypes, ...body } = request.body
    await updateEndpoint({ decide, clock, random, rules }, { ...endpoint, ...body, eventTypes })
    return endpointBody(pool, { ...endpoint, requestId: request.id })
  })
}

function disableRoute(app: FastifyInstance, context: WebhookContext): void {
  const { pool, auth, decide, clock, random } = context
  const schema = {
    ...shared,
    operationId: 'disableWebhookEndpoint',
    summary: 'Disable a webhook endpoint; it stays in the list',
    response: { 200: single(endpointSchema), ...errorResponses(400, 401, 403, 404, 409, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('webhooks:manage')
  const preValidation = refuseBody('webhook_endpoint_disable')
  app.delete<Params>(path, { schema, onRequest, preValidation }, async (request) => {
    const endpoint = endpointPath(context, request)
    await disableEndpoint({ decide, clock, random }, endpoint)
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
  app.post<Params>(`${path}/rotations`, { schema, onRequest, preValidation }, (request, reply) => {
    const endpoint = endpointPath(context, request)
    reply.header('cache-control', 'no-store')
    return idempotency.run({ request, reply }, async (command) => {
      const rotated = await rotateSecret(depsOf(command), endpoint)
      return revealedAnswer(pool, { ...rotated, ...endpoint, requestId: request.id })
    })
  })
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
  app.post<Params>(`${path}/test`, { schema, onRequest, preValidation }, (request, reply) => {
    const endpoint = endpointPath(context, request)
    return idempotency.run({ request, reply }, async (command) => {
      const { eventId } = await sendTest(depsOf(command), endpoint)
      const { of, leased } = await loadDeliveries(pool, [eventId])
      const data = testJson({ eventId, deliveries: of(eventId), leased })
      return { status: 202, body: { data, meta: { request_id: request.id } } }
    })
  })
}

interface Params {
  Params: z.output<typeof endpointParams>
}

interface Update {
  Body: z.output<typeof updateEndpointBody>
}

/** 404 for what cannot be the id of an endpoint. */
function endpointPath({ scopeOf }: WebhookContext, request: FastifyRequest<Params>): EndpointPath {
  const { endpointId } = request.params
  if (!isId('we', endpointId)) throw noSuchEndpoint()
  return { ...scopeOf(request), endpointId }
}

async function endpointBody(db: Db, { requestId, ...path }: EndpointPath & { requestId: string }) {
  const endpoint = endpointFor(await findEndpoint(db, path))
  return { data: endpointJson(endpoint), meta: { request_id: requestId } }
}
