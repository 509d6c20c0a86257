import { ApiError, filledError } from '../errors/errors.ts'
import type { Clock } from '../ids.ts'
import { originAllowed } from './origins.ts'
import type { KeyRecord, Principal, PublishablePrincipal, SecretPrincipal } from './principal.ts'
import { defaultScopes, type Scope } from './scopes.ts'

/** The key of an `Authorization: Bearer` header. 401 without the header or with anything else in it. */
export function bearerOf(authorization: string | undefined): string {
  if (!authorization?.trim()) throw new ApiError('auth.missing_api_key')
  const token = /^bearer +(\S+)\s*$/i.exec(authorization)?.[1]
  if (!token) throw new ApiError('auth.invalid_api_key')
  return token
}

/** Who the key speaks for. 401 unknown, revoked or past its grace; 403 when its organization is not active. */
export function usable(record: KeyRecord | undefined, clock: Clock): Principal {
  const graceEnded =
    record?.status === 'rotating' && record.graceExpiresAt !== null && record.graceExpiresAt <= clock()
  if (!record || record.status === 'revoked' || graceEnded) throw new ApiError('auth.invalid_api_key')
  if (record.organizationStatus !== 'active') throw new ApiError('auth.organization_inactive')
  return record.principal
}

/** 403 for a publishable key. */
export function secretOnly(principal: Principal | null): SecretPrincipal {
  if (principal?.type === 'secret') return principal
  const native = principal && principal.clientTarget !== 'browser'
  throw new ApiError(native ? 'auth.native_key_not_allowed' : 'auth.secret_key_required')
}

/** 403 for a secret key. */
export function publishableOnly(principal: Principal | null): PublishablePrincipal {
  if (principal?.type === 'publishable') return principal
  throw new ApiError('auth.secret_key_not_allowed')
}

/** 403 naming the scope that the key lacks. */
export function checkScope({ scopes: stored }: SecretPrincipal, scope: Scope): void {
  const granted: readonly string[] = stored.length > 0 ? stored : defaultScopes
  if (granted.includes('*') || granted.includes(scope)) return
  throw filledError('auth.insufficient_scope', { scope })
}

/** 403 for any other organization, whether or not there is one of that id. */
export function checkOrganization({ organizationId }: SecretPrincipal, params: unknown): void {
  const named = typeof params === 'object' && params !== null && 'organizationId' in params
  if (named && params.organizationId === organizationId) return
  throw new ApiError('auth.organization_access_denied')
}

/** 403 for a page that a browser key does not allow, and for any page with a native key. */
export function checkOrigin(
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
