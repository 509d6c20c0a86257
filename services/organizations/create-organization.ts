import type { Decision } from '../../infra/decide.ts'
import { ApiError } from '../../infra/http/errors.ts'
import { derivedId, type OrganizationId } from '../../infra/ids.ts'
import { bounds, checkedName, checkedSlug } from './checked-fields.ts'
import { decided } from './decided.ts'

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

/**
 * A new, active organization; 409 when another has the slug, 422 for a bad name or slug. No event when it has been
 * created already: the command is repeated.
 */
export function createOrganization({ takenBy }: SlugState, command: CreateOrganization): Decision[] {
  const { organizationId, now } = command
  const name = checkedName(command.name, { max: bounds.organizationName, parameterSet })
  const slug = checkedSlug(command.slug, parameterSet)
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
