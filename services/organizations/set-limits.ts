import type { Decision } from '../../infra/decide.ts'
import type { OrganizationRow } from '../../projections/organizations/rows.ts'
import { invalid } from './checked-fields.ts'
import { decided, organizationFor } from './decided.ts'

export interface SetLimits {
  /** Units in 60 seconds of the bucket of all secret keys; null = the server's default, undefined = as it is. */
  secretLimit?: number | null | undefined
  publishableLimit?: number | null | undefined
  eventId: string
  /** Epoch milliseconds. */
  now: number
}

const maxLimit = 1_000_000_000

/** The organization's own rate limits; no event when nothing changes. 404 without it, 422 for what is not a limit. */
export function setLimits(state: OrganizationRow | undefined, command: SetLimits): Decision[] {
  const { eventId, now } = command
  const organization = organizationFor(state, 'operator')
  const { id: organizationId } = organization
  const secret_limit = checkedLimit('secret_limit', command.secretLimit, organization.secret_limit)
  const publishable_limit = checkedLimit(
    'publishable_limit',
    command.publishableLimit,
    organization.publishable_limit,
  )
  const same =
    secret_limit === organization.secret_limit && publishable_limit === organization.publishable_limit
  if (same) return []
  const data = { organization_id: organizationId, secret_limit, publishable_limit, changed_at: now }
  const about = { organizationId, environment: null, eventId, now }
  return [decided({ type: 'OrganizationLimitsChanged', data }, about)]
}

function checkedLimit(name: string, limit: number | null | undefined, current: number | null): number | null {
  if (limit === undefined) return current
  if (limit === null || (Number.isInteger(limit) && limit >= 1 && limit <= maxLimit)) return limit
  const expected = `a whole number from 1 to ${maxLimit}, or the default`
  throw invalid({ name, issue: 'invalid', expected }, 'organization_limits')
}
