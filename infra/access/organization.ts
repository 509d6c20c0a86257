import { ApiError } from '../errors/errors.ts'

// What the commands of several services have in common when they decide about an organization.

/** Who gives a command: an API key of the organization itself, or the operator of the installation. */
export type CallerKind = 'key' | 'operator'

/**
 * The organization that a command is about; 404 when there is none. 403 for its own keys when it is not
 * active: a key verified shortly before could otherwise still change it, even its status.
 */
export function organizationFor<O extends { status: string }>(
  organization: O | undefined,
  by: CallerKind,
): O {
  if (!organization)
    throw new ApiError('request.not_found', { message: 'No such organization exists.' })
  if (by === 'key' && organization.status !== 'active')
    throw new ApiError('auth.organization_inactive')
  return organization
}

/**
 * The lock for all decisions about an organization's webhook endpoints, and about services that name one. So
 * neither can miss what the other decides.
 */
export const endpointsLock = (organizationId: string): string =>
  `webhook-endpoints:${organizationId}`
