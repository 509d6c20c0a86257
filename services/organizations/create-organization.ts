import { ApiError } from '../../infra/errors/errors.ts'
import type { Decision } from '../../infra/event-store/decide.ts'
import { decided } from '../../infra/event-store/decided.ts'
import { checkedName } from '../../infra/http/checked-fields.ts'
import { derivedId, type OrganizationId } from '../../infra/ids.ts'
import { bounds, checkedSlug } from './checked-fields.ts'

export interface CreateOrganization {
  organizationId: OrganizationId
  name: string
  slug: string
  /** Epoch milliseconds. */
  now: number
}

/** What has the slug already. */
export interface SlugState {
  takenBy: string | undefined
}

const parameterSet = 'organization_create'

/** The request as it is decided about. 422 for a bad name or slug: neither may reach the database. */
export function completeOrganizationRequest(request: { name: string; slug: string }) {
  return {
    name: checkedName(request.name, { max: bounds.organizationName, parameterSet }),
    slug: checkedSlug(request.slug, parameterSet),
  }
}

/**
 * A new, active organization; 409 when another has the slug. No event when it has been created already: the command
 * is repeated.
 */
export function createOrganization({ takenBy }: SlugState, command: CreateOrganization): Decision[] {
  const { organizationId, name, slug, now } = command
  if (takenBy === organizationId) return []
  if (takenBy) {
    throw new ApiError('request.conflict', {
      message: `The slug ${slug} is taken.`,
      details: { fields: [{ name: 'slug', issue: 'taken', received: slug }], parameter_set: parameterSet },
    })
  }
  const data = { organization_id: organizationId, name, slug, created_at: now }
  const eventId = derivedId('evt', organizationId, 'created')
  return [decided({ type: 'OrganizationCreated', data }, { organizationId, environment: null, eventId, now })]
}
