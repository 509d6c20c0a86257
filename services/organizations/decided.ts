import type { Decision } from '../../infra/decide.ts'
import { ApiError } from '../../infra/http/errors.ts'
import type { OrganizationRow } from '../../projections/organizations/rows.ts'
import type { DomainEvent } from '../../schemas/codec.ts'
import type { Environment } from '../../schemas/events.ts'

interface About {
  organizationId: string
  /** Of the key that it is about; null = of the organization as a whole. */
  environment: Environment | null
  /** A repetition of the same change has the same id and is applied once. */
  eventId: string
  /** Epoch milliseconds. */
  now: number
}

/** The event with what every event says about itself. */
export function decided(event: DomainEvent, { organizationId, environment, eventId, now }: About): Decision {
  return { event, meta: { eventId, time: now, organizationId, environment } }
}

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
