import { ApiError } from '../../infra/errors/errors.ts'
import type { OrganizationRow } from './rows.ts'

/** Who gives a command: an API key of the organization itself, or the operator of the installation. */
export type Actor = 'key' | 'operator'

/**
 * The organization that a command is about; 404 when there is none. 403 for its own keys when it is not active: a key
 * verified shortly before would otherwise still change it, and even set its status back.
 */
export function organizationFor(organization: OrganizationRow | undefined, by: Actor): OrganizationRow {
  if (!organization) throw new ApiError('request.not_found', { message: 'No such organization exists.' })
  if (by === 'key' && organization.status !== 'active') throw new ApiError('auth.organization_inactive')
  return organization
}
