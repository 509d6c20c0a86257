import { checkScopes } from '../../infra/access/key-checks.ts'
import type { CallerKind } from '../../infra/access/organization.ts'
import type { Caller } from '../../infra/access/principal.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { invalid } from '../../infra/http/checked-fields.ts'
import type { ApiKeyRow } from '../../projections/organizations/tables.ts'
import type { Environment } from '../../schemas/events.ts'
import type { KeySpec } from './checked-input.ts'

/** Who gives a command about keys. A key may make others no mightier than itself, and a test key touches no live one. */
export type KeyCaller =
  | 'operator'
  | { type?: Caller['type']; environment: Environment; scopes: readonly string[] }

export const callerKindOf = (by: KeyCaller): CallerKind => (by === 'operator' ? 'operator' : 'key')

/**
 * The answer is the same for an id that is malformed, unknown, another organization's, or of a live key that a test key
 * asks for. Nobody learns which.
 */
export function noSuchKey(): ApiError {
  return new ApiError('request.not_found', {
    message: 'No API key with this id exists for this caller, or it is revoked.',
  })
}

const isBeyond = (environment: Environment, by: KeyCaller) =>
  by !== 'operator' && by.environment === 'test' && environment === 'live'

/** 404 for a live key where the caller is a test key. */
export function reachableKey(key: ApiKeyRow | undefined, by: KeyCaller): ApiKeyRow {
  if (!key || isBeyond(key.environment, by)) throw noSuchKey()
  return key
}

/** 403 for scopes that the caller does not have. Publishable keys have none. */
export function checkGrant(
  { type, scopes }: Pick<ApiKeyRow, 'type' | 'scopes'>,
  by: KeyCaller,
): void {
  if (by !== 'operator' && type === 'secret') checkScopes(by, scopes ?? [])
}

/** 422 for a live key where the caller is a test key, then 403 for scopes that it does not have. */
export function checkIssue(spec: KeySpec, by: KeyCaller): void {
  if (isBeyond(spec.environment, by)) {
    const expected = 'test, as the caller'
    throw invalid({ name: 'environment', issue: 'not_allowed', expected }, 'api_key_create')
  }
  checkGrant(spec, by)
}

/** For `Idempotency.run`: an answer with a new key is repeated only to who may as much. undefined = everything. */
export function authorityOf({ scopes }: Caller): string | undefined {
  return scopes.includes('*') ? undefined : scopes.toSorted().join(' ')
}
