import type { DomainEvent, EventMeta } from '../../infra/event-store/event.ts'
import type { NetworkLocation, SessionScored } from '../../schemas/events.ts'
import { metaOf, sessionScored, visitorLink } from '../support/session-scored.ts'

export const id = <Prefix extends string>(prefix: Prefix, n: number) =>
  `${prefix}_${String(n).padStart(26, '0')}` as const

/** Location of an address that no database lists. */
export const nowhere: NetworkLocation = {
  city: null,
  region: null,
  country: null,
  country_code: null,
  latitude: null,
  longitude: null,
  timezone: null,
  postal_code: null,
  accuracy_radius_km: null,
}

/** Returns decision `n` of a session. Several sessions share a visitor. */
export function decision(
  n: number,
  { session = n, ...overrides }: Partial<SessionScored> & { session?: number } = {},
) {
  const data = sessionScored({
    event_id: id('evt', n),
    session_id: id('sid', session),
    evaluated_at: 1_000_000 + n,
    risk_score: n % 100,
    visitor: visitorLink({ id: id('vid', session % 7), vector: [n] }),
    ...overrides,
  })
  const event: DomainEvent = { type: 'SessionScored', data }
  return { event, meta: metaOf(data) satisfies EventMeta }
}

export function decisions(from: number, count: number, sessions = count) {
  return Array.from({ length: count }, (_, i) =>
    decision(from + i, { session: (from + i) % sessions }),
  )
}
