import { checkScopes } from '../../infra/access/key-checks.ts'
import type { CallerKind } from '../../infra/access/organization.ts'
import type { Caller } from '../../infra/access/principal.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { invalid } from '../../infra/http/checked-fields.ts'
import type { ApiKeyRow } from '../../projections/organizations/tables.ts'
import type { Environment } from '../../schemas/events.ts'
import type { KeySpec } from './checked-input.ts'

/** Caller of a key command. A key can grant only scopes that it has, and a test key cannot reach live keys. */
export type KeyCaller =
  | 'operator'
  | { type?: Caller['type']; environment: Environment; scopes: readonly string[] }

export const callerKindOf = (by: KeyCaller): CallerKind => (by === 'operator' ? 'operator' : 'key')

/**
 * Returns the same 404 for an id that is malformed, unknown or another organization's, and for a live key requested by
 * a test key, so that callers cannot tell them apart.
 */
export function noSuchKey(): ApiError {
  return new ApiError('request.not_found', {
    message: 'No active API key with this id is visible to this caller.',
  })
}

const isOutOfReach = (environment: Environment, by: KeyCaller) =>
  by !== 'operator' && by.environment === 'test' && environment === 'live'

/** Throws 404 if there is no key, or if it is a live key and the caller a test key. */
export function requireReachableKey(key: ApiKeyRow | undefined, by: KeyCaller): ApiKeyRow {
  if (!key || isOutOfReach(key.environment, by)) throw noSuchKey()
  return key
}

/** Throws 403 if the key has scopes that the caller lacks. Publishable keys have none. */
export function checkGrant(
  { type, scopes }: Pick<ApiKeyRow, 'type' | 'scopes'>,
  by: KeyCaller,
): void {
  if (by !== 'operator' && type === 'secret') checkScopes(by, scopes ?? [])
}

/** Throws 422 for a live key if the caller is a test key, and 403 for scopes that the caller lacks. */
export function requireMayIssue(spec: KeySpec, by: KeyCaller): void {
  if (isOutOfReach(spec.environment, by)) {
    const expected = 'test, because the caller is a test key'
    throw invalid({ name: 'environment', issue: 'not_allowed', expected }, 'api_key_create')
  }
  checkGrant(spec, by)
}

/**
 * Returns the caller's scopes in canonical order, as the `requester` of `Idempotency.run`, so that a stored response is
 * replayed only to callers with the same scopes. Returns undefined for `*`.
 */
export function scopeSetOf({ scopes }: Caller): string | undefined {
  return scopes.includes('*') ? undefined : scopes.toSorted().join(' ')
}
