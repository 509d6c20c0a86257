import type { FastifyInstance, FastifyRequest } from 'fastify'
import type pg from 'pg'
import { z } from 'zod'
import type { Auth } from '../../infra/access/auth.ts'
import { lastUsedAt } from '../../infra/access/key-usage.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import { unavailable } from '../../infra/errors/errors.ts'
import type { CommandDeps, DecideAs } from '../../infra/event-store/decide.ts'
import { refuseBody } from '../../infra/http/checked-fields.ts'
import {
  type Cursors,
  createCursors,
  loadPage,
  pageQuery,
  refuseOffset,
} from '../../infra/http/pagination.ts'
import { errorResponses, list, organizationParams, single } from '../../infra/http/schemas.ts'
import { fittingCheck } from '../../infra/http/validation.ts'
import type { Command, CommandAnswer, Idempotency } from '../../infra/idempotency/idempotency.ts'
import { type Clock, isId, type Random } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { findKey, listKeys } from '../../projections/organizations/queries.ts'
import { authorityOf, noSuchKey } from './authority.ts'
import { checkKeyFields } from './checked-input.ts'
import {
  type IssuedKey,
  issueApiKey,
  type KeyPath,
  revokeApiKey,
  rotateApiKey,
  updateApiKey,
} from './commands.ts'
import { changeableKey } from './decide-key.ts'
import {
  apiKeyJson,
  apiKeySchema,
  createKeyBody,
  issuedApiKeySchema,
  keyParams,
  storedTarget,
  updateKeyBody,
} from './schemas.ts'

export interface KeyRouteOptions {
  /**
   * The one that decisions use: a new secret is shown once, and its answer must not wait behind slow searches. The
   * tables of `createKeyUsageTables` are in it.
   */
  pool: pg.Pool
  decideAs: DecideAs
  auth: Auth
  keyring: Keyring
  clock: Clock
  random: Random
  idempotency: Idempotency
}

const tags = ['API keys']
const security = [{ secretKey: [] }]
const keysPath = '/v1/organizations/:organizationId/api-keys'
const keyPath = `${keysPath}/:keyId`
const listQuery = z.object(pageQuery)
const keyMembers = z.object(createKeyBody.shape).partial()
const ofOneKey = {
  description:
    'Requires the `api_keys:manage` secret-key scope, and each scope that the key has or gets; a key with `*` may change any. A live key is not found by a test key.',
  tags,
  security,
  params: keyParams,
}

export function keyRoutes(app: FastifyInstance, options: KeyRouteOptions): void {
  listRoute(app, options, createCursors(options))
  createRoute(app, options)
  updateRoute(app, options)
  revokeRoute(app, options)
  rotateRoute(app, options)
}

function listRoute(app: FastifyInstance, { pool, auth }: KeyRouteOptions, cursors: Cursors): void {
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
  app.get<OfOrganization & Query>(keysPath, { schema, ...hooks }, async (request) => {
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

function createRoute(app: FastifyInstance, options: KeyRouteOptions): void {
  const { pool, auth, idempotency } = options
  const schema = {
    operationId: 'createOrganizationApiKey',
    summary: 'Create an API key',
    description:
      'Requires the `api_keys:manage` secret-key scope, and each scope that the new key gets; a key with `*` may give any. The new key is of the environment of the calling key, unless `environment` says otherwise; a test key makes no live ones. A name alone makes a secret key with the scopes sessions:read, sessions:update and fingerprints:read.',
    tags,
    security,
    params: organizationParams,
    body: createKeyBody,
    response: { 201: single(issuedApiKeySchema), ...errorResponses(400, 401, 403, 404, 409, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('api_keys:manage')
  const config = {
    parameterSet: 'api_key_create',
    checkFitting: fittingCheck(keyMembers, ({ name, allowed_origins: allowedOrigins, ...asked }, request) => {
      const { environment = auth.secret(request).environment } = asked
      checkKeyFields({ name, allowedOrigins }, { environment, parameterSet: 'api_key_create' })
    }),
  }
  app.post<OfOrganization & Create>(keysPath, { schema, onRequest, config }, (request, reply) => {
    const { organizationId } = request.params
    const by = auth.secret(request)
    const {
      environment = by.environment,
      allowed_origins: allowedOrigins,
      client_target,
      ...body
    } = request.body
    const asked = {
      ...body,
      organizationId,
      by,
      environment,
      allowedOrigins,
      clientTarget: client_target && storedTarget(client_target),
    }
    reply.header('cache-control', 'no-store')
    return idempotency.run({ request, reply, requester: authorityOf(by) }, async (command) => {
      const issued = await issueApiKey(repeatable(options, { request, command }), asked)
      return issuedAnswer(pool, { ...issued, organizationId, requestId: request.id })
    })
  })
}

function updateRoute(app: FastifyInstance, { pool, auth, decideAs, clock, random }: KeyRouteOptions): void {
  const schema = {
    ...ofOneKey,
    operationId: 'updateOrganizationApiKey',
    summary: 'Change the name, allowed origins or scopes of an API key',
    body: updateKeyBody,
    response: { 200: single(apiKeySchema), ...errorResponses(400, 401, 403, 404, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('api_keys:manage')
  const config = { parameterSet: 'api_key_update' }
  // Before the body is validated: a key that cannot be changed is not found, whatever the body says.
  const preValidation = async (request: FastifyRequest<OfKey>) => {
    const { organizationId, keyId } = checkedPath(request.params)
    changeableKey(await findKey(pool, organizationId, keyId), auth.secret(request))
  }
  app.patch<OfKey & Update>(keyPath, { schema, onRequest, preValidation, config }, async (request) => {
    const key = checkedPath(request.params)
    const { allowed_origins: allowedOrigins, ...body } = request.body
    const decide = decideAs(auth.actor(request), request)
    await updateApiKey(
      { decide, clock, random },
      { ...key, ...body, allowedOrigins, by: auth.secret(request) },
    )
    return keyBody(pool, { ...key, requestId: request.id })
  })
}

function revokeRoute(app: FastifyInstance, { pool, auth, decideAs, clock }: KeyRouteOptions): void {
  const schema = {
    ...ofOneKey,
    operationId: 'revokeOrganizationApiKey',
    summary: 'Revoke an API key for good',
    description:
      'Requires the `api_keys:manage` secret-key scope. Whatever scopes it has, a key of the organization can be revoked, a live one by a live key.',
    response: { 200: single(apiKeySchema), ...errorResponses(400, 401, 403, 404, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('api_keys:manage')
  const preValidation = refuseBody('api_key_revoke')
  app.delete<OfKey>(keyPath, { schema, onRequest, preValidation }, async (request) => {
    const key = checkedPath(request.params)
    const decide = decideAs(auth.actor(request), request)
    await revokeApiKey({ decide, clock }, { ...key, by: auth.secret(request) })
    return keyBody(pool, { ...key, requestId: request.id })
  })
}

function rotateRoute(app: FastifyInstance, options: KeyRouteOptions): void {
  const { pool, auth, idempotency } = options
  const schema = {
    ...ofOneKey,
    operationId: 'rotateOrganizationApiKey',
    summary: 'Replace an API key; it works for 24 more hours',
    response: { 201: single(issuedApiKeySchema), ...errorResponses(400, 401, 403, 404, 409, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('api_keys:manage')
  const preValidation = refuseBody('api_key_rotate')
  app.post<OfKey>(`${keyPath}/rotations`, { schema, onRequest, preValidation }, (request, reply) => {
    const { organizationId, keyId } = checkedPath(request.params)
    const by = auth.secret(request)
    reply.header('cache-control', 'no-store')
    return idempotency.run({ request, reply, requester: authorityOf(by) }, async (command) => {
      const issued = await rotateApiKey(
        { ...repeatable(options, { request, command }), pool },
        { organizationId, keyId, by },
      )
      return issuedAnswer(pool, { ...issued, organizationId, requestId: request.id })
    })
  })
}

// What makes a command the same whenever it is repeated, but for when it happens.
function repeatable(
  { decideAs, auth, keyring, clock }: KeyRouteOptions,
  { request, command: { random, now: idTime } }: { request: FastifyRequest; command: Command },
): CommandDeps {
  return { decide: decideAs(auth.actor(request), request), keyring, clock, random, idTime }
}

interface OfOrganization {
  Params: z.output<typeof organizationParams>
}

interface OfKey {
  Params: z.output<typeof keyParams>
}

interface Query {
  Querystring: z.output<typeof listQuery>
}

interface Create {
  Body: z.output<typeof createKeyBody>
}

interface Update {
  Body: z.output<typeof updateKeyBody>
}

// 404 for what cannot be the id of a key, a key's value among it.
function checkedPath({ organizationId, keyId }: z.output<typeof keyParams>): KeyPath {
  if (!isId('key', keyId)) throw noSuchKey()
  return { organizationId, keyId }
}

async function keyBody(db: Db, { organizationId, keyId, requestId }: KeyPath & { requestId: string }) {
  const key = await findKey(db, organizationId, keyId)
  if (!key) throw noSuchKey()
  const used = await lastUsedAt(db, [keyId])
  return { data: apiKeyJson(key, { lastUsedAt: used.get(keyId) }), meta: { request_id: requestId } }
}

async function issuedAnswer(
  db: Db,
  { revealedKey, requestId, ...path }: IssuedKey & KeyPath & { requestId: string },
): Promise<CommandAnswer> {
  const key = await findKey(db, path.organizationId, path.keyId)
  // Not a refusal: the key exists, and the same command will show it.
  if (!key) throw unavailable(new Error(`the issued key ${path.keyId} is not readable`))
  return { status: 201, body: { data: apiKeyJson(key, { revealedKey }), meta: { request_id: requestId } } }
}
