import { ApiError } from '../../infra/errors/errors.ts'
import type { ApiKeyRow, OrganizationRow } from '../../projections/organizations/tables.ts'

/** What a decision about one key is made from; undefined = there is none of that id in the organization. */
export interface KeyState {
  organization: OrganizationRow | undefined
  key: ApiKeyRow | undefined
}

/** The same for an id that is malformed, unknown, or another organization's: nobody learns which. */
export function noSuchKey(): ApiError {
  return new ApiError('request.not_found', {
    message: 'No API key with this id exists in this organization, or it is revoked.',
  })
}

/** The key, active or rotating; 404 else. */
export function keyInUse(key: ApiKeyRow | undefined): ApiKeyRow {
  if (!key || key.status === 'revoked') throw noSuchKey()
  return key
}
