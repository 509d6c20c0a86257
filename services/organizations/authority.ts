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
 * a test key, so that nobody learns which.
 */
export function noSuchKey(): ApiError {
  return new ApiError('request.not_found', {
    message: 'No API key with this id exists for this caller, or it is revoked.',
  })
}

const isOutOfReach = (environment: Environment, by: KeyCaller) =>
  by !== 'operator' && by.environment === 'test' && environment === 'live'

/** Returns the key. 404 for a live key if the caller is a test key. */
export function reachableKey(key: ApiKeyRow | undefined, by: KeyCaller): ApiKeyRow {
  if (!key || isOutOfReach(key.environment, by)) throw noSuchKey()
  return key
}

/** 403 for scopes that the caller lacks. Publishable keys have none. */
export function checkGrant(
  { type, scopes }: Pick<ApiKeyRow, 'type' | 'scopes'>,
  by: KeyCaller,
): void {
  if (by !== 'operator' && type === 'secret') checkScopes(by, scopes ?? [])
}

/** 422 for a live key if the caller is a test key, then 403 for scopes that it lacks. */
export function checkIssue(spec: KeySpec, by: KeyCaller): void {
  if (isOutOfReach(spec.environment, by)) {
    const expected = 'test, as the caller'
    throw invalid({ name: 'environment', issue: 'not_allowed', expected }, 'api_key_create')
  }
  checkGrant(spec, by)
}

/**
 * Returns the `requester` of `Idempotency.run`: only a key with the same scopes gets the stored response. undefined =
 * all.
 */
export function scopeSetOf({ scopes }: Caller): string | undefined {
  return scopes.includes('*') ? undefined : scopes.toSorted().join(' ')
}
