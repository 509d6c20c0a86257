import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { loadLastUses } from '../../infra/access/key-usage.ts'
import { unavailable } from '../../infra/errors/errors.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { createCursors, loadPage, pageQuery, refuseOffset } from '../../infra/http/pagination.ts'
import { list, organizationParams, single } from '../../infra/http/schemas.ts'
import { validMembersCheck } from '../../infra/http/validation.ts'
import { type CommandRouteOptions, commandDeps } from '../../infra/idempotency/idempotency.ts'
import { isId } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { findKey, listKeys } from '../../projections/organizations/queries.ts'
import { noSuchKey, scopeSetOf } from './authority.ts'
import { checkKeyFields } from './checked-input.ts'
import {
  type IssuedKey,
  issueApiKey,
  type KeyPath,
  revokeApiKey,
  rotateApiKey,
  updateApiKey,
} from './commands.ts'
import { requireChangeableKey } from './decide-key.ts'
import {
  apiKeyJson,
  apiKeySchema,
  createKeyBody,
  issuedApiKeySchema,
  keyParams,
  storedTarget,
  updateKeyBody,
} from './schemas.ts'

const tag = 'API keys'
const keysPath = '/v1/organizations/:organizationId/api-keys'
const keyPath = `${keysPath}/:keyId` as const
const requiresManage =
  'Requires the `api_keys:manage` secret-key scope, and every scope that the changed key has or gets; a key with `*` can change any key. For a test key, live keys return 404.'

export function keyRoutes(app: FastifyInstance, options: CommandRouteOptions): void {
  listRoute(app, options)
  createRoute(app, options)
  updateRoute(app, options)
  revokeRoute(app, options)
  rotateRoute(app, options)
}

function listRoute(app: FastifyInstance, { pool, auth, keyring }: CommandRouteOptions): void {
  const cursors = createCursors({ keyring })
  endpoint(app, {
    route: `GET ${keysPath}`,
    auth: auth.requireOwnOrganization('api_keys:read'),
    operationId: 'listOrganizationApiKeys',
    tag,
    summary: 'List API keys',
    description:
      'Requires the `api_keys:read` secret-key scope. Returns the keys of both environments, newest first, including revoked ones.',
    params: organizationParams,
    query: z.object(pageQuery),
    beforeValidation: refuseOffset,
    responses: { 200: list(apiKeySchema) },
    errors: [404, 422],
    async run(request) {
      const { organizationId, environment } = auth.dataScope(request)
      const { limit, cursor } = request.query
      const { rows, pagination } = await loadPage({
        limit,
        cursor,
        cursors,
        query: { list: 'api-keys', organizationId, environment },
        load: (after) =>
          listKeys(pool, organizationId, {
            limit,
            after: after && { createdAt: after.value, id: after.id },
          }),
        positionOf: (row) => ({ value: row.created_at, id: row.id }),
      })
      const lastUses = await loadLastUses(
        pool,
        rows.map(({ id }) => id),
      )
      return {
        data: rows.map((row) => apiKeyJson(row, { lastUsedAt: lastUses.get(row.id) })),
        pagination,
      }
    },
  })
}

function createRoute(app: FastifyInstance, options: CommandRouteOptions): void {
  const { pool, auth, idempotency } = options
  endpoint(app, {
    route: `POST ${keysPath}`,
    auth: auth.requireOwnOrganization('api_keys:manage'),
    operationId: 'createOrganizationApiKey',
    tag,
    summary: 'Create an API key',
    description:
      "Requires the `api_keys:manage` secret-key scope, and every scope that the new key gets; a key with `*` can grant any scope. The new key belongs to the calling key's environment unless `environment` is set; test keys can't create live keys. With only a name, creates a secret key with the scopes sessions:read, sessions:update and fingerprints:read.",
    params: organizationParams,
    body: createKeyBody,
    parameterSet: 'api_key_create',
    checkValidMembers: validMembersCheck(
      z.object(createKeyBody.shape).partial(),
      ({ name, ...fields }, request) => {
        const { environment = auth.caller(request).environment, allowed_origins } = fields
        checkKeyFields({ name, allowed_origins }, { environment, parameterSet: 'api_key_create' })
      },
    ),
    responses: { 201: single(issuedApiKeySchema) },
    errors: [404],
    run(request, { reply, toResponse }) {
      const { organizationId } = request.params
      const by = auth.caller(request)
      const { environment = by.environment, client_target: target, ...body } = request.body
      const client_target = target && storedTarget(target)
      const spec = { ...body, organizationId, by, environment, client_target }
      reply.header('cache-control', 'no-store')
      return idempotency.run({ request, reply, requester: scopeSetOf(by) }, async (command) => {
        const issued = await issueApiKey(commandDeps(options, request, command), spec)
        return toResponse(await issuedKeyResponse(pool, { ...issued, organizationId }))
      })
    },
  })
}

function updateRoute(app: FastifyInstance, options: CommandRouteOptions): void {
  const { pool, auth } = options
  endpoint(app, {
    route: `PATCH ${keyPath}`,
    auth: auth.requireOwnOrganization('api_keys:manage'),
    operationId: 'updateOrganizationApiKey',
    tag,
    summary: 'Update an API key',
    description: `${requiresManage} Changes take effect within 15 seconds.`,
    params: keyParams,
    body: updateKeyBody,
    parameterSet: 'api_key_update',
    responses: { 200: single(apiKeySchema) },
    errors: [404],
    // 404 for a key that cannot be changed takes precedence over 422 for the body.
    async beforeValidation(request) {
      const { organizationId, keyId } = requireKeyPath(request.params)
      requireChangeableKey(await findKey(pool, organizationId, keyId), auth.caller(request))
    },
    async run(request) {
      const key = requireKeyPath(request.params)
      const by = auth.caller(request)
      await updateApiKey(commandDeps(options, request), { ...key, ...request.body, by })
      return keyResponse(pool, key)
    },
  })
}

function revokeRoute(app: FastifyInstance, options: CommandRouteOptions): void {
  const { pool, auth } = options
  endpoint(app, {
    route: `DELETE ${keyPath}`,
    auth: auth.requireOwnOrganization('api_keys:manage'),
    operationId: 'revokeOrganizationApiKey',
    tag,
    summary: 'Revoke an API key',
    description:
      'Requires the `api_keys:manage` secret-key scope. Permanent. A key can be revoked whatever its scopes, and a live key only by a live key.',
    params: keyParams,
    rejectBodyAs: 'api_key_revoke',
    responses: { 200: single(apiKeySchema) },
    errors: [404],
    async run(request) {
      const key = requireKeyPath(request.params)
      await revokeApiKey(commandDeps(options, request), { ...key, by: auth.caller(request) })
      return keyResponse(pool, key)
    },
  })
}

function rotateRoute(app: FastifyInstance, options: CommandRouteOptions): void {
  const { pool, auth, idempotency } = options
  endpoint(app, {
    route: `POST ${keyPath}/rotations`,
    auth: auth.requireOwnOrganization('api_keys:manage'),
    operationId: 'rotateOrganizationApiKey',
    tag,
    summary: 'Rotate an API key',
    description: `${requiresManage} Creates a replacement with the same settings. The old key works for another 24 hours.`,
    params: keyParams,
    rejectBodyAs: 'api_key_rotate',
    responses: { 201: single(issuedApiKeySchema) },
    errors: [404],
    run(request, { reply, toResponse }) {
      const { organizationId, keyId } = requireKeyPath(request.params)
      const by = auth.caller(request)
      reply.header('cache-control', 'no-store')
      return idempotency.run({ request, reply, requester: scopeSetOf(by) }, async (command) => {
        const deps = { ...commandDeps(options, request, command), pool }
        const issued = await rotateApiKey(deps, { organizationId, keyId, by })
        return toResponse(await issuedKeyResponse(pool, { ...issued, organizationId }))
      })
    },
  })
}

// Throws 404 for a malformed id, such as the key itself.
function requireKeyPath({ organizationId, keyId }: z.output<typeof keyParams>): KeyPath {
  if (!isId('key', keyId)) throw noSuchKey()
  return { organizationId, keyId }
}

async function keyResponse(db: Db, { organizationId, keyId }: KeyPath) {
  const key = await findKey(db, organizationId, keyId)
  if (!key) throw noSuchKey()
  const lastUses = await loadLastUses(db, [keyId])
  return { data: apiKeyJson(key, { lastUsedAt: lastUses.get(keyId) }) }
}

async function issuedKeyResponse(
  db: Db,
  { revealedKey, organizationId, keyId }: IssuedKey & KeyPath,
) {
  const key = await findKey(db, organizationId, keyId)
  // Retryable, because the key exists and a repeated request returns it.
  if (!key) throw unavailable(new Error(`the issued key ${keyId} is not readable`))
  return { data: apiKeyJson(key, { revealedKey }) }
}
