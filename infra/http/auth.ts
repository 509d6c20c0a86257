import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import type { Clock } from '../ids.ts'
import { ApiError } from './errors.ts'
import { createKeyCache, type KeyCacheOptions } from './key-cache.ts'
import { originAllowed } from './origins.ts'
import type { KeyRecord, Principal, PublishablePrincipal, SecretPrincipal } from './principal.ts'

/** What a secret key may do; `*` is all of them, also those to come. */
export const scopes = [
  '*',
  'sessions:list',
  'sessions:read',
  'sessions:update',
  'fingerprints:list',
  'fingerprints:read',
  'organizations:create',
  'organizations:read',
  'organizations:update',
  'api_keys:read',
  'api_keys:manage',
  'webhooks:read',
  'webhooks:manage',
  'gate:agent_tokens:verify',
  'gate:agent_tokens:revoke',
  'gate:login_sessions:consume',
  'gate:services:read',
  'gate:services:manage',
  'agents:ip_rotation',
] as const
export type Scope = (typeof scopes)[number]

/** What a secret key without stored scopes may do. */
export const defaultScopes: Scope[] = ['sessions:read', 'sessions:update', 'fingerprints:read']

export type AuthOptions = Omit<KeyCacheOptions, 'cacheMs'> & { cacheMs?: number }
export type Auth = ReturnType<typeof createAuth>

/** onRequest hooks that verify the bearer key and set `request.principal`, and typed readers of it. */
export function createAuth({ cacheMs = 15_000, ...options }: AuthOptions) {
  const find = createKeyCache({ ...options, cacheMs })

  // A key that is cached, as nearly all are, is checked without a promise.
  const verified =
    (check: (principal: Principal, request: FastifyRequest) => void): onRequestHookHandler =>
    (request, _reply, done) => {
      const accept = (record: KeyRecord | undefined) => {
        request.principal = usable(record, options.clock)
        check(request.principal, request)
      }
      try {
        const found = find(bearerOf(request))
        if (found instanceof Promise) return void found.then(accept).then(() => done(), done)
        accept(found)
      } catch (error) {
        return done(error instanceof Error ? error : new Error(String(error)))
      }
      done()
    }

  return {
    /** For REST endpoints: a secret key with the scope. */
    requireSecret: (scope: Exclude<Scope, '*'>) =>
      verified((principal) => checkScope(secretOnly(principal), scope)),
    /** For collect endpoints: a publishable key, from an origin that it allows. */
    requirePublishable: () =>
      verified((principal, { headers }) => checkOrigin(publishableOnly(principal), headers.origin)),
    /** Who the request speaks for; throws on a route without one of the hooks. */
    principal(request: FastifyRequest): Principal {
      if (!request.principal) throw new Error(`${request.routeOptions.url} does not authenticate`)
      return request.principal
    },
    secret: (request: FastifyRequest): SecretPrincipal => secretOnly(request.principal),
    publishable: (request: FastifyRequest): PublishablePrincipal => publishableOnly(request.principal),
  }
}

function bearerOf({ headers }: FastifyRequest): string {
  if (!headers.authorization?.trim()) throw new ApiError('auth.missing_api_key')
  const token = /^bearer +(\S+)\s*$/i.exec(headers.authorization)?.[1]
  if (!token) throw new ApiError('auth.invalid_api_key')
  return token
}

function usable(record: KeyRecord | undefined, clock: Clock): Principal {
  const graceEnded =
    record?.status === 'rotating' && record.graceExpiresAt !== null && record.graceExpiresAt <= clock()
  if (!record || record.status === 'revoked' || graceEnded) throw new ApiError('auth.invalid_api_key')
  if (record.organizationStatus !== 'active') throw new ApiError('auth.organization_inactive')
  return record.principal
}

function secretOnly(principal: Principal | null): SecretPrincipal {
  if (principal?.type === 'secret') return principal
  const native = principal && principal.clientTarget !== 'browser'
  throw new ApiError(native ? 'auth.native_key_not_allowed' : 'auth.secret_key_required')
}

function publishableOnly(principal: Principal | null): PublishablePrincipal {
  if (principal?.type === 'publishable') return principal
  throw new ApiError('auth.secret_key_not_allowed')
}

function checkScope({ scopes: stored }: SecretPrincipal, scope: Scope): void {
  const granted: readonly string[] = stored.length > 0 ? stored : defaultScopes
  if (granted.includes('*') || granted.includes(scope)) return
  throw new ApiError('auth.insufficient_scope', { message: `The API key lacks the scope ${scope}.` })
}

function checkOrigin(
  { clientTarget, allowedOrigins }: PublishablePrincipal,
  origin: string | undefined,
): void {
  if (clientTarget !== 'browser') {
    // Only a browser sends Origin, and a browser is not the key's own mobile SDK.
    if (origin !== undefined) throw new ApiError('auth.native_key_not_allowed')
    return
  }
  if (!originAllowed(origin, allowedOrigins)) throw new ApiError('auth.origin_not_allowed')
}
