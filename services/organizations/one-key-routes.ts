import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { lastUsedAt } from '../../infra/access/key-usage.ts'
import { refuseBody } from '../../infra/http/checked-fields.ts'
import { errorResponses, single } from '../../infra/http/schemas.ts'
import { isId } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { findKey } from '../../projections/organizations/queries.ts'
import { type KeyPath, revokeApiKey, rotateApiKey, updateApiKey } from './key-commands.ts'
import { issuedAnswer } from './key-routes.ts'
import { keyInUse, noSuchKey } from './key-state.ts'
import type { OrganizationContext } from './routes.ts'
import { apiKeySchema, issuedApiKeySchema, keyParams, updateKeyBody } from './schemas.ts'
import { apiKeyJson } from './shapes.ts'

const tags = ['API keys']
const security = [{ secretKey: [] }]
const description = 'Requires the `api_keys:manage` secret-key scope.'
const path = '/v1/organizations/:organizationId/api-keys/:keyId'
const shared = { description, tags, security, params: keyParams }

/** What is about one key: change, revoke, rotate. */
export function oneKeyRoutes(app: FastifyInstance, context: OrganizationContext): void {
  updateRoute(app, context)
  revokeRoute(app, context)
  rotateRoute(app, context)
}

function updateRoute(app: FastifyInstance, { pool, auth, decide, clock, random }: OrganizationContext): void {
  const schema = {
    ...shared,
    operationId: 'updateOrganizationApiKey',
    summary: 'Change the name, allowed origins or scopes of an API key',
    body: updateKeyBody,
    response: { 200: single(apiKeySchema), ...errorResponses(400, 401, 403, 404, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('api_keys:manage')
  const config = { parameterSet: 'api_key_update' }
  // Before the body is validated: a key that cannot be changed is not found, whatever the body says.
  const preValidation = async ({ params }: FastifyRequest<Params>) => {
    const { organizationId, keyId } = keyPath(params)
    keyInUse(await findKey(pool, organizationId, keyId))
  }
  app.patch<Params & Update>(path, { schema, onRequest, preValidation, config }, async (request) => {
    const key = keyPath(request.params)
    const { allowed_origins: allowedOrigins, ...body } = request.body
    await updateApiKey({ decide, clock, random }, { ...key, ...body, allowedOrigins, by: 'key' })
    return keyBody(pool, { ...key, requestId: request.id })
  })
}

function revokeRoute(app: FastifyInstance, { pool, auth, decide, clock }: OrganizationContext): void {
  const schema = {
    ...shared,
    operationId: 'revokeOrganizationApiKey',
    summary: 'Revoke an API key for good',
    response: { 200: single(apiKeySchema), ...errorResponses(400, 401, 403, 404, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('api_keys:manage')
  const preValidation = refuseBody('api_key_revoke')
  app.delete<Params>(path, { schema, onRequest, preValidation }, async (request) => {
    const key = keyPath(request.params)
    await revokeApiKey({ decide, clock }, { ...key, by: 'key' })
    return keyBody(pool, { ...key, requestId: request.id })
  })
}

function rotateRoute(app: FastifyInstance, { pool, auth, idempotency, depsOf }: OrganizationContext): void {
  const schema = {
    ...shared,
    operationId: 'rotateOrganizationApiKey',
    summary: 'Replace an API key; it works for 24 more hours',
    response: { 201: single(issuedApiKeySchema), ...errorResponses(400, 401, 403, 404, 409, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('api_keys:manage')
  const preValidation = refuseBody('api_key_rotate')
  app.post<Params>(`${path}/rotations`, { schema, onRequest, preValidation }, (request, reply) => {
    const { organizationId, keyId } = keyPath(request.params)
    reply.header('cache-control', 'no-store')
    return idempotency.run({ request, reply }, async (command) => {
      const issued = await rotateApiKey({ ...depsOf(command), pool }, { organizationId, keyId })
      return issuedAnswer(pool, { ...issued, organizationId, requestId: request.id })
    })
  })
}

interface Params {
  Params: z.output<typeof keyParams>
}

interface Update {
  Body: z.output<typeof updateKeyBody>
}

/** 404 for what cannot be the id of a key, a key's value among it. */
function keyPath({ organizationId, keyId }: z.output<typeof keyParams>): KeyPath {
  if (!isId('key', keyId)) throw noSuchKey()
  return { organizationId, keyId }
}

async function keyBody(db: Db, { organizationId, keyId, requestId }: KeyPath & { requestId: string }) {
  const key = await findKey(db, organizationId, keyId)
  if (!key) throw noSuchKey()
  const used = await lastUsedAt(db, [keyId])
  return { data: apiKeyJson(key, { lastUsedAt: used.get(keyId) }), meta: { request_id: requestId } }
}
