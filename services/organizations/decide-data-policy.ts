import { isDeepStrictEqual } from 'node:util'
import { requireUsableOrganization } from '../../infra/access/organization.ts'
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

/** Changes of a policy. Undefined members stay unchanged. */
export type DataPolicyChanges = {
  [K in keyof Omit<DataPolicyRow, 'organization_id' | 'changed_at'>]?: DataPolicyRow[K] | undefined
}

export const defaultDataPolicy = {
  session_days: null,
  decision_days: null,
  visitor_days: null,
  webhook_days: null,
  shortens_addresses: false,
  allows_minimal_mode: false,
  hidden_facts: null,
  facts_topic: false,
}

const maxDays = 36_500
// Sessions and visitors: at least two days, because a session can last a day and its late data must not be lost.
// Decisions: a day is enough, because only the newest is needed. Webhooks: deliveries are retried for more than three
// days, and nothing older than a month is redelivered.
const bounds: Record<keyof RetentionDays, [min: number, max: number]> = {
  session_days: [2, maxDays],
  decision_days: [1, maxDays],
  visitor_days: [2, maxDays],
  webhook_days: [7, 30],
}

/**
 * Returns no event if nothing changes. Throws 404 if the organization does not exist, 422 if days are out of bounds or
 * facts are unknown.
 */
export function decideDataPolicy(
  {
    organization,
    policy,
  }: { organization: OrganizationRow | undefined; policy: DataPolicyRow | undefined },
  { changes, eventId, now }: { changes: DataPolicyChanges; eventId: string; now: number },
): DecidedEvent[] {
  const { id: organizationId } = requireUsableOrganization(organization, 'operator')
  const current = policy ?? defaultDataPolicy
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
  const names = Object.keys(defaultDataPolicy) as (keyof typeof defaultDataPolicy)[]
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
  const [min, max] = bounds[name]
  const isForever = days === 0 && name !== 'webhook_days'
  if (days === null || isForever || (Number.isInteger(days) && days >= min && days <= max))
    return days
  const expected = `${min} to ${max} days${name === 'webhook_days' ? '' : ', for ever'}, or the default`
  throw invalid({ name, issue: 'invalid', expected }, 'organization_data_policy')
}

function checkedFacts(
  names: string[] | null | undefined,
  current: string[] | null,
): string[] | null {
  if (names === undefined) return current
  if (names === null) return null
  const hidden = hideableFacts.filter((name) => names.includes(name))
  if (hidden.length === new Set(names).size) return hidden
  const expected = `some of ${hideableFacts.join(', ')}`
  throw invalid({ name: 'hidden_facts', issue: 'invalid', expected }, 'organization_data_policy')
}

const dayMs = 24 * 60 * 60 * 1000
// Delays the expiry of decisions. A session's last decision comes shortly after its 24 hours, and the previous one must
// not have expired by then, because a rebuild would have both.
const decisionGraceMs = 60 * 60 * 1000

/** Returns the retention in days: the organization's setting, or else the operator's default. 0: forever. */
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

// Returns the UTC midnights before which data has expired. They never move back, even if retention is extended.
function expiryCutoffs(
  days: RetentionDays,
  current: Expiration | null | undefined,
  now: number,
): Expiration {
  const cutoff = (count: number | null, at = now) =>
    count ? at - (at % dayMs) - count * dayMs : null
  const sessions_before = latest(current?.sessions_before, cutoff(days.session_days))
  const decisions_before = cutoff(days.decision_days, now - decisionGraceMs)
  return {
    sessions_before,
    decisions_before: latest(current?.decisions_before, decisions_before, sessions_before),
    visitors_before: latest(current?.visitors_before, cutoff(days.visitor_days)),
    webhooks_before: latest(current?.webhooks_before, cutoff(days.webhook_days)),
  }
}

function latest(...times: (number | null | undefined)[]): number | null {
  const present = times.filter((time) => typeof time === 'number')
  return present.length === 0 ? null : Math.max(...present)
}

/** Returns no event if nothing has expired since the last one. */
export function decideExpiration(
  current: DataExpirationRow | null | undefined,
  { organizationId, days, now }: { organizationId: string; days: RetentionDays; now: number },
): DecidedEvent[] {
  const expiration = expiryCutoffs(days, current, now)
  const names = Object.keys(expiration) as (keyof Expiration)[]
  if (names.every((name) => (current?.[name] ?? null) === expiration[name])) return []
  const data = { organization_id: organizationId, ...expiration, expired_at: now }
  const eventId = derivedId(
    'evt',
    organizationId,
    'data-expired',
    ...Object.values(expiration).map(String),
  )
  const about = { organizationId, environment: null, eventId, now }
  return [decidedEvent({ type: 'OrganizationDataExpired', data }, about)]
}
