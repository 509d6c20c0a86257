import { ApiError, filledError } from '../errors/errors.ts'
import type { Clock } from '../ids.ts'
import {
  type Caller,
  defaultScopes,
  type KeyPrincipal,
  type KeyRecord,
  type PersonPrincipal,
  type Principal,
  type PublishablePrincipal,
  type Scope,
  type SecretPrincipal,
  type SharedSetting,
} from './principal.ts'

/** Throws 401 unless the header has a bearer token. */
export function bearerToken(authorization: string | undefined): string {
  if (!authorization?.trim()) throw new ApiError('auth.missing_api_key')
  const token = /^bearer +(\S+)\s*$/i.exec(authorization)?.[1]
  if (!token) throw new ApiError('auth.invalid_api_key')
  return token
}

/**
 * Returns the key's principal. Throws 401 if the key is unknown, revoked or past its end, and 403 if its organization is
 * not active.
 */
export function requireUsableKey(record: KeyRecord | undefined, clock: Clock): KeyPrincipal {
  if (!record || isKeyUnusable(record, clock())) throw new ApiError('auth.invalid_api_key')
  if (record.organizationStatus !== 'active') throw new ApiError('auth.organization_inactive')
  return record.principal
}

/** Returns true for a revoked key, and for one past its end. */
export const isKeyUnusable = (
  { status, endsAt }: Pick<KeyRecord, 'status' | 'endsAt'>,
  now: number,
): boolean => status === 'revoked' || (endsAt !== null && endsAt <= now)

/** Throws 403 for any other principal. */
export function asSecretPrincipal(principal: Principal | null): SecretPrincipal {
  if (principal?.type === 'secret') return principal
  const native = principal?.type === 'publishable' && principal.clientTarget !== 'browser'
  throw new ApiError(native ? 'auth.native_key_not_allowed' : 'auth.secret_key_required')
}

export function asCaller(principal: Principal | null): Caller {
  return principal?.type === 'person' ? principal : asSecretPrincipal(principal)
}

export function asPublishablePrincipal(principal: Principal | null): PublishablePrincipal {
  if (principal?.type === 'publishable') return principal
  throw new ApiError('auth.secret_key_not_allowed')
}

export function checkScope(caller: Caller, scope: Scope): void {
  checkScopes(caller, [scope])
}

/** Throws 403 naming the first missing scope. In both lists, empty means the default scopes. */
export function checkScopes(
  { type, scopes }: { type?: Caller['type']; scopes: readonly string[] },
  required: readonly string[],
): void {
  const granted = effectiveScopes(scopes)
  if (granted.includes('*')) return
  const missing = effectiveScopes(required).find((scope) => !granted.includes(scope))
  if (missing === undefined) return
  if (type !== 'person') throw filledError('auth.insufficient_scope', { scope: missing })
  const message = `The role of this console session lacks the scope ${missing}.`
  throw new ApiError('auth.insufficient_scope', { message })
}

/** Returns the scopes of a secret key: the stored ones, or the default ones if none are stored. */
export const effectiveScopes = (stored: readonly string[]) =>
  stored.length > 0 ? stored : defaultScopes

/** Throws 403 for any `organizationId` in the path but the caller's own, even if no such organization exists. */
export function checkOrganization({ type, organizationId }: Caller, params: unknown): void {
  const hasId = typeof params === 'object' && params !== null && 'organizationId' in params
  if (hasId && params.organizationId === organizationId) return
  if (type !== 'person') throw new ApiError('auth.organization_access_denied')
  const message = 'This console session belongs to another organization.'
  throw new ApiError('auth.organization_access_denied', { message })
}

type EnvironmentGrant =
  | Pick<SecretPrincipal, 'type' | 'environment'>
  | Pick<PersonPrincipal, 'type' | 'environments'>

/** Throws 403 for a caller without access to live, except for a test key if the setting allows it. */
export function checkLiveAccess(
  caller: EnvironmentGrant,
  { subject, allowsTestKeys }: SharedSetting,
): void {
  const isPerson = caller.type === 'person'
  if (!isPerson && allowsTestKeys) return
  const granted = isPerson ? caller.environments : [caller.environment]
  if (granted.includes('live')) return
  const remedy = isPerson ? 'log in by a link that includes live' : 'use a live key'
  const message = `${subject} apply to live and test; ${remedy}.`
  throw new ApiError('auth.live_access_required', { message })
}

/** Throws 403 for an origin that a browser key does not allow, and for any origin with a native key. */
export function checkOrigin(
  { clientTarget, allowedOrigins }: PublishablePrincipal,
  origin: string | undefined,
): void {
  if (clientTarget !== 'browser') {
    // Only browsers send Origin, and a native key belongs to a mobile SDK.
    if (origin !== undefined) throw new ApiError('auth.native_key_not_allowed')
    return
  }
  if (!isOriginAllowed(origin, allowedOrigins)) throw new ApiError('auth.origin_not_allowed')
}

/**
 * Matches an origin against exact ones (`https://shop.example:8443`) and wildcards (`https://*.shop.example`: any depth
 * of subdomain, but not shop.example itself). Allowed origins are as stored: lower case, punycode, no default port. An
 * empty list allows every origin, and requests without one.
 */
export function isOriginAllowed(origin: string | undefined, allowedOrigins: string[]): boolean {
  if (allowedOrigins.length === 0) return true
  if (!origin) return false
  // Browsers send the stored form, so nearly every allowed origin matches here.
  if (allowedOrigins.includes(origin)) return true
  const url = parseOrigin(origin)
  return url !== undefined && allowedOrigins.some((allowed) => matchesOrigin(url, allowed))
}

// Returns undefined for `null` (RFC 6454, 7.1), and for anything with a path, user, query or default port.
function parseOrigin(origin: string): URL | undefined {
  const url = URL.parse(origin)
  return url?.origin === origin.toLowerCase() ? url : undefined
}

const wildcardStart = 'https://*.'

function matchesOrigin(origin: URL, allowed: string): boolean {
  if (!allowed.startsWith(wildcardStart)) return origin.origin === allowed
  const suffix = allowed.slice(wildcardStart.length - 1)
  return (
    origin.protocol === 'https:' &&
    origin.host.endsWith(suffix) &&
    origin.host.length > suffix.length
  )
}
