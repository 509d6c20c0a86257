import type { Decision } from '../../infra/event-store/decide.ts'
import { decided } from '../../infra/event-store/decided.ts'
import { invalid } from '../../infra/http/checked-fields.ts'
import { organizationFor } from '../../projections/organizations/queries.ts'
import type { OrganizationRow } from '../../projections/organizations/tables.ts'

export interface SetLimits {
  /** Units in 60 seconds of the bucket of all secret keys; null = the server's default, undefined = as it is. */
  secretLimit?: number | null | undefined
  publishableLimit?: number | null | undefined
  eventId: string
  /** Epoch milliseconds. */
  now: number
}

/** A secret key's most expensive request: ten items of IP rotation. With less it would never be admitted. */
const minSecretLimit = 10
const minPublishableLimit = 1
const maxLimit = 1_000_000_000

/** The organization's own rate limits; no event when nothing changes. 404 without it, 422 for what is not a limit. */
export function setLimits(state: OrganizationRow | undefined, command: SetLimits): Decision[] {
  const { eventId, now } = command
  const organization = organizationFor(state, 'operator')
  const { id: organizationId } = organization
  const { secretLimit, publishableLimit } = command
  const secret_limit =
    secretLimit === undefined
      ? organization.secret_limit
      : checkedLimit(secretLimit, { name: 'secret_limit', min: minSecretLimit })
  const publishable_limit =
    publishableLimit === undefined
      ? organization.publishable_limit
      : checkedLimit(publishableLimit, { name: 'publishable_limit', min: minPublishableLimit })
  const same =
    secret_limit === organization.secret_limit && publishable_limit === organization.publishable_limit
  if (same) return []
  const data = { organization_id: organizationId, secret_limit, publishable_limit, changed_at: now }
  const about = { organizationId, environment: null, eventId, now }
  return [decided({ type: 'OrganizationLimitsChanged', data }, about)]
}

function checkedLimit(
  limit: number | null,
  { name, min }: { name: 'secret_limit' | 'publishable_limit'; min: number },
): number | null {
  if (limit === null || (Number.isInteger(limit) && limit >= min && limit <= maxLimit)) return limit
  const expected = `a whole number from ${min} to ${maxLimit}, or the default`
  throw invalid({ name, issue: 'invalid', expected }, 'organization_limits')
}
