import { ApiError } from '../errors/errors.ts'

// Shared by commands of several services that decide about an organization.

/** The caller of a command: an API key of the organization itself, or the operator of the installation. */
export type CallerKind = 'key' | 'operator'

/**
 * Returns the organization that a command is about. 404 if it does not exist; 403 for its own keys if it is not active,
 * because a key verified shortly before could otherwise still change it, even its status.
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
 * Names the lock that serializes decisions about an organization's webhook endpoints with those about services that
 * refer to an endpoint.
 */
export const endpointsLock = (organizationId: string): string =>
  `webhook-endpoints:${organizationId}`
