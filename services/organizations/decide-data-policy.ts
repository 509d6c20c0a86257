import { isDeepStrictEqual } from 'node:util'
import { organizationFor } from '../../infra/access/organization.ts'
import { checkAll } from '../../infra/errors/check-all.ts'
import { type DecidedEvent, decidedEvent } from '../../infra/event-store/decide.ts'
import { invalid } from '../../infra/http/checked-fields.ts'
import { derivedId } from '../../infra/ids.ts'
import type { OrganizationRow } from '../../projections/organizations/tables.ts'
import type {
  DataExpirationRow,
  DataPolicyRow,
  RetentionDays,
} from '../../projections/policies/tables.ts'
import { hideableFacts } from '../../projections/sessions/session-facts.ts'

/** Undefined = as it is. */
export type DataPolicyChanges = {
  [K in keyof Omit<DataPolicyRow, 'organization_id' | 'changed_at'>]?: DataPolicyRow[K] | undefined
}

export const noDataPolicy = {
  session_days: null,
  decision_days: null,
  visitor_days: null,
  webhook_days: null,
  shortens_addresses: false,
  allows_minimal_mode: false,
  hidden_facts: null,
  facts_topic: false,
}

const mostDays = 36_500
// A session may last for a day, and what it says afterwards would be lost if it had ended meanwhile. Of its decisions only
// the newest is needed, and that ends a day after it was made at the earliest. Deliveries are tried for three days and
// more, and later than a month nothing is delivered again.
const bounds: Record<keyof RetentionDays, [least: number, most: number]> = {
  session_days: [2, mostDays],
  decision_days: [1, mostDays],
  visitor_days: [2, mostDays],
  webhook_days: [7, 30],
}

export function decideDataPolicy(
  {
    organization,
    policy,
  }: { organization: OrganizationRow | undefined; policy: DataPolicyRow | undefined },
  { changes, eventId, now }: { changes: DataPolicyChanges; eventId: string; now: number },
): DecidedEvent[] {
  const { id: organizationId } = organizationFor(organization, 'operator')
  const current = policy ?? noDataPolicy
  const { shortens_addresses = current.shortens_addresses } = changes
  const { allows_minimal_mode = current.allows_minimal_mode } = changes
  const { facts_topic = current.facts_topic } = changes
  const next = {
    ...checkAll({
      session_days: () => checkedDays('session_days', changes, current),
      decision_days: () => checkedDays('decision_days', changes, current),
      visitor_days: () => checkedDays('visitor_days', changes, current),
      webhook_days: () => checkedDays('webhook_days', changes, current),
      hidden_facts: () => checkedFacts(changes.hidden_facts, current.hidden_facts),
    }),
    shortens_addresses,
    allows_minimal_mode,
    facts_topic,
  }
  const names = Object.keys(noDataPolicy) as (keyof typeof noDataPolicy)[]
  if (names.every((name) => isDeepStrictEqual(next[name], current[name]))) return []
  const data = { organization_id: organizationId, ...next, changed_at: now }
  const about = { organizationId, environment: null, eventId, now }
  return [decidedEvent({ type: 'OrganizationDataPolicyChanged', data }, about)]
}

function checkedDays(
  name: keyof RetentionDays,
  changes: DataPolicyChanges,
  current: RetentionDays,
) {
  const days = changes[name]
  if (days === undefined) return current[name]
  const [least, most] = bounds[name]
  const isForEver = days === 0 && name !== 'webhook_days'
  if (days === null || isForEver || (Number.isInteger(days) && days >= least && days <= most))
    return days
  const expected = `${least} to ${most} days${name === 'webhook_days' ? '' : ', for ever'}, or the default`
  throw invalid({ name, issue: 'invalid', expected }, 'organization_data_policy')
}

function checkedFacts(
  names: string[] | null | undefined,
  current: string[] | null,
): string[] | null {
  if (names === undefined) return current
  if (names === null) return null
  const known = hideableFacts.filter((name) => names.includes(name))
  if (known.length === new Set(names).size) return known
  const expected = `some of ${hideableFacts.join(', ')}`
  throw invalid({ name: 'hidden_facts', issue: 'invalid', expected }, 'organization_data_policy')
}

const dayMs = 24 * 60 * 60 * 1000
// The decision that ends a session comes a little after its 24 hours. It must not find that the one before has ended,
// because a rebuild would have both.
const lastDecisionMs = 60 * 60 * 1000

/** How many days data stay: the organization's own, else the operator's. 0 = for ever. */
export function retentionOf(
  policy: RetentionDays | null | undefined,
  defaults: RetentionDays,
): RetentionDays {
  return {
    session_days: policy?.session_days ?? defaults.session_days,
    decision_days: policy?.decision_days ?? defaults.decision_days,
    visitor_days: policy?.visitor_days ?? defaults.visitor_days,
    webhook_days: policy?.webhook_days ?? defaults.webhook_days,
  }
}

type Expiration = Omit<DataExpirationRow, 'organization_id' | 'expired_at'>

// What has ended by now, in whole days of UTC. What ended once stays so, whatever is to stay for longer later.
function expirationOf(
  days: RetentionDays,
  known: Expiration | null | undefined,
  now: number,
): Expiration {
  const before = (count: number | null, at = now) =>
    count ? at - (at % dayMs) - count * dayMs : null
  const sessions_before = latest(known?.sessions_before, before(days.session_days))
  const decisions_before = before(days.decision_days, now - lastDecisionMs)
  return {
    sessions_before,
    decisions_before: latest(known?.decisions_before, decisions_before, sessions_before),
    visitors_before: latest(known?.visitors_before, before(days.visitor_days)),
    webhooks_before: latest(known?.webhooks_before, before(days.webhook_days)),
  }
}

function latest(...times: (number | null | undefined)[]): number | null {
  const known = times.filter((time) => typeof time === 'number')
  return known.length === 0 ? null : Math.max(...known)
}

export function decideExpiration(
  known: DataExpirationRow | null | undefined,
  { organizationId, days, now }: { organizationId: string; days: RetentionDays; now: number },
): DecidedEvent[] {
  const ended = expirationOf(days, known, now)
  const names = Object.keys(ended) as (keyof Expiration)[]
  if (names.every((name) => (known?.[name] ?? null) === ended[name])) return []
  const data = { organization_id: organizationId, ...ended, expired_at: now }
  const eventId = derivedId(
    'evt',
    organizationId,
    'data-expired',
    ...Object.values(ended).map(String),
  )
  const about = { organizationId, environment: null, eventId, now }
  return [decidedEvent({ type: 'OrganizationDataExpired', data }, about)]
}
