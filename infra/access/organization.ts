import { ApiError } from '../errors/errors.ts'

/** The caller of a command: an API key of the organization itself, or the operator of the installation. */
export type CallerKind = 'key' | 'operator'

/**
 * Throws 404 if the organization does not exist, and 403 if it is not active and the caller is one of its keys: a key
 * verified shortly before could otherwise still change it, even its status.
 */
export function requireUsableOrganization<O extends { status: string }>(
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
 * Returns the name of the lock that serializes decisions about an organization's webhook endpoints with those about
 * services that refer to an endpoint.
 */
export const webhookEndpointsLock = (organizationId: string): string =>
  `webhook-endpoints:${organizationId}`
