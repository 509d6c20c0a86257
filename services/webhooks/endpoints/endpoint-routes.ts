import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import { unavailable } from '../../../infra/errors/errors.ts'
import { refusingOffset } from '../../../infra/http/pagination.ts'
import { errorResponses, list, organizationParams, single } from '../../../infra/http/schemas.ts'
import type { CommandAnswer } from '../../../infra/idempotency/idempotency.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { findEndpoint, listEndpoints, maxListedEndpoints } from '../../../projections/webhooks/queries.ts'
import type { WebhookContext } from '../routes.ts'
import { createEndpoint, type EndpointPath } from './endpoint-commands.ts'
import { createEndpointBody, endpointSchema } from './schemas.ts'
import { endpointJson } from './shapes.ts'

const tags = ['Webhooks']
const security = [{ secretKey: [] }]
const path = '/v1/organizations/:organizationId/webhooks/endpoints'

/** What is not about one endpoint: the list, and a new one. */
export function endpointRoutes(app: FastifyInstance, context: WebhookContext): void {
  listRoute(app, context)
  createRoute(app, context)
}

function listRoute(app: FastifyInstance, { pool, auth, scopeOf }: WebhookContext): void {
  const schema = {
    operationId: 'listWebhookEndpoints',
    summary: "List the webhook endpoints of the key's environment, newest first, disabled ones too",
    description: `Requires the \`webhooks:read\` secret-key scope. At most ${maxListedEndpoints}: every active one, and the newest of those that are disabled.`,
    tags,
    security,
    params: organizationParams,
    response: { 200: list(endpointSchema), ...errorResponses(401, 403, 422) },
  }
  const hooks = {
    onRequest: auth.requireOwnOrganization('webhooks:read'),
    preValidation: refusingOffset('no offset: the list is one page'),
  }
  app.get<Params>(path, { schema, ...hooks }, async (request) => {
    const rows = await listEndpoints(pool, scopeOf(request))
    const data = rows.map((row) => endpointJson(row))
    return {
      data,
      pagination: { limit: maxListedEndpoints, has_more: false },
      meta: { request_id: request.id },
    }
  })
}

function createRoute(app: FastifyInstance, context: WebhookContext): void {
  const { pool, auth, idempotency, depsOf, scopeOf } = context
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
  const config = { parameterSet: 'webhook_endpoint_create' }
  app.post<Params & Create>(path, { schema, onRequest, config }, (request, reply) => {
    const { event_types: eventTypes, ...body } = request.body
    const scope = scopeOf(request)
    reply.header('cache-control', 'no-store')
    return idempotency.run({ request, reply }, async (command) => {
      const created = await createEndpoint(depsOf(command), { ...body, ...scope, eventTypes })
      return revealedAnswer(pool, { ...created, ...scope, requestId: request.id })
    })
  })
}

interface Params {
  Params: z.output<typeof organizationParams>
}

interface Create {
  Body: z.output<typeof createEndpointBody>
}

/** 201 with the endpoint and its new signing secret. */
export async function revealedAnswer(
  db: Db,
  { signingSecret, requestId, ...path }: EndpointPath & { signingSecret: string; requestId: string },
): Promise<CommandAnswer> {
  const endpoint = await findEndpoint(db, path)
  // Not a refusal: the endpoint exists, and the same command will show it.
  if (!endpoint) throw unavailable(new Error(`the endpoint ${path.endpointId} is not readable`))
  const data = endpointJson(endpoint, { signingSecret })
  return { status: 201, body: { data, meta: { request_id: requestId } } }
}
