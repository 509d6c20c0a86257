import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { lastUsedAt } from '../../infra/access/key-usage.ts'
import { unavailable } from '../../infra/errors/errors.ts'
import { loadPage, pageQuery, refuseOffset } from '../../infra/http/pagination.ts'
import { errorResponses, list, organizationParams, single } from '../../infra/http/schemas.ts'
import type { CommandAnswer } from '../../infra/idempotency/idempotency.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { findKey, listKeys } from '../../projections/organizations/queries.ts'
import { type IssuedKey, issueApiKey, type KeyPath } from './key-commands.ts'
import type { OrganizationContext } from './routes.ts'
import { apiKeySchema, createKeyBody, issuedApiKeySchema } from './schemas.ts'
import { apiKeyJson, storedTarget } from './shapes.ts'

const tags = ['API keys']
const security = [{ secretKey: [] }]
const listQuery = z.object(pageQuery)
const path = '/v1/organizations/:organizationId/api-keys'

/** What is not about one key: the list, and a new one. */
export function keyRoutes(app: FastifyInstance, context: OrganizationContext): void {
  listRoute(app, context)
  createRoute(app, context)
}

function listRoute(app: FastifyInstance, { pool, auth, cursors }: OrganizationContext): void {
  const schema = {
    operationId: 'listOrganizationApiKeys',
    summary: 'List API keys of both environments, newest first, revoked ones too',
    description: 'Requires the `api_keys:read` secret-key scope.',
    tags,
    security,
    params: organizationParams,
    querystring: listQuery,
    response: { 200: list(apiKeySchema), ...errorResponses(401, 403, 404, 422) },
  }
  const hooks = { onRequest: auth.requireOwnOrganization('api_keys:read'), preValidation: refuseOffset }
  app.get<Params & Query>(path, { schema, ...hooks }, async (request) => {
    const { organizationId } = request.params
    const { limit, cursor } = request.query
    const { rows, pagination } = await loadPage({
      limit,
      cursor,
      cursors,
      query: { list: 'api-keys', organizationId, environment: auth.secret(request).environment },
      load: (after) =>
        listKeys(pool, organizationId, { limit, after: after && { createdAt: after.value, id: after.id } }),
      positionOf: (row) => ({ value: row.created_at, id: row.id }),
    })
    const used = await lastUsedAt(
      pool,
      rows.map(({ id }) => id),
    )
    const data = rows.map((row) => apiKeyJson(row, { lastUsedAt: used.get(row.id) }))
    return { data, pagination, meta: { request_id: request.id } }
  })
}

function createRoute(app: FastifyInstance, { pool, auth, idempotency, depsOf }: OrganizationContext): void {
  const schema = {
    operationId: 'createOrganizationApiKey',
    summary: 'Create an API key',
    description:
      'Requires the `api_keys:manage` secret-key scope. A name alone makes a secret key with the scopes sessions:read, sessions:update and fingerprints:read.',
    tags,
    security,
    params: organizationParams,
    body: createKeyBody,
    response: { 201: single(issuedApiKeySchema), ...errorResponses(400, 401, 403, 404, 409, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('api_keys:manage')
  const config = { parameterSet: 'api_key_create' }
  app.post<Params & Create>(path, { schema, onRequest, config }, (request, reply) => {
    const { organizationId } = request.params
    const { environment, allowed_origins: allowedOrigins, client_target, ...body } = request.body
    const asked = {
      ...body,
      organizationId,
      environment: environment ?? auth.secret(request).environment,
      allowedOrigins,
      clientTarget: client_target && storedTarget(client_target),
    }
    reply.header('cache-control', 'no-store')
    return idempotency.run({ request, reply }, async (command) => {
      const issued = await issueApiKey(depsOf(command), asked)
      return issuedAnswer(pool, { ...issued, organizationId, requestId: request.id })
    })
  })
}

interface Params {
  Params: z.output<typeof organizationParams>
}

interface Query {
  Querystring: z.output<typeof listQuery>
}

interface Create {
  Body: z.output<typeof createKeyBody>
}

/** 201 with the key, this once as a whole. */
export async function issuedAnswer(
  db: Db,
  { revealedKey, requestId, ...path }: IssuedKey & KeyPath & { requestId: string },
): Promise<CommandAnswer> {
  const key = await findKey(db, path.organizationId, path.keyId)
  // Not a refusal: the key exists, and the same command will show it.
  if (!key) throw unavailable(new Error(`the issued key ${path.keyId} is not readable`))
  return { status: 201, body: { data: apiKeyJson(key, { revealedKey }), meta: { request_id: requestId } } }
}
