import type { DomainEvent, EventMeta } from '../../infra/event-store/event.ts'
import type { SessionScored } from '../../schemas/events.ts'
import { visitorErased } from './erased.ts'
import { sessionScored, visitorLink } from './session-scored.ts'

/** Returns the metadata of a past event. */
export const pastMeta = ({ type, data }: DomainEvent): EventMeta => ({
  eventId:
    'event_id' in data ? data.event_id : `${type} ${'expired_at' in data ? data.expired_at : ''}`,
  time: 1,
  organizationId: 'organization_id' in data ? data.organization_id : null,
  environment: 'environment' in data ? data.environment : null,
})

const day = 24 * 60 * 60 * 1000
const id = (prefix: string, n: number) => `${prefix}_${String(n).padStart(26, '0')}`

const pastSession = (n: number): string => id('sid', n)

/** Returns the visitor to which the session moves; undefined if it stays. */
function movedTo(n: number): string | undefined {
  if (n % 7 === 0) return id('vid', 1_000_000 + n)
  return n % 11 === 0 ? id('vid', 2_000_000 + Math.floor(n / 44)) : undefined
}

/**
 * Returns events of an organization's sessions, an hour apart, from `start`. Four sessions share a visitor. Each has
 * two decisions, every fifth a mark, and every seventh and eleventh moves to another visitor.
 */
export function pastEvents(
  { organizationId: organization_id }: { organizationId: string },
  { from, count, start }: { from: number; count: number; start: number },
): DomainEvent[] {
  const environment = 'live' as const
  return Array.from({ length: count }, (_, i) => from + i).flatMap((n): DomainEvent[] => {
    const at = start + n * (day / 24)
    const about = { organization_id, environment, session_id: pastSession(n) }
    const visitor_id = id('vid', Math.floor(n / 4))
    const decided = (m: number, some: Partial<SessionScored>): DomainEvent => ({
      type: 'SessionScored',
      data: sessionScored({
        ...about,
        event_id: id('evt', n * 10 + m),
        created_at: at,
        evaluated_at: at + m * 1000,
        visitor: visitorLink({ id: visitor_id, identified_at: at }),
        ...some,
      }),
    })
    const mark: DomainEvent = {
      type: 'SessionMarked',
      data: {
        ...about,
        event_id: id('evt', n * 10 + 2),
        mark_id: id('mrk', n),
        label: 'bot',
        reason: null,
        marked_at: at + 3000,
      },
    }
    const split: DomainEvent = {
      type: 'VisitorSplit',
      data: {
        ...about,
        event_id: id('evt', n * 10 + 3),
        visitor_id: id('vid', 1_000_000 + n),
        earlier_visitor_id: visitor_id,
        cause: 'continuity_returned',
        confidence: 85,
        split_at: at + 4000,
      },
    }
    const merger: DomainEvent = {
      type: 'VisitorMerged',
      data: {
        ...about,
        event_id: id('evt', n * 10 + 4),
        visitor_id: id('vid', 2_000_000 + Math.floor(n / 44)),
        earlier_visitor_id: visitor_id,
        confidence: 85,
        merged_at: at + 4000,
      },
    }
    return [
      decided(0, { is_provisional: true }),
      decided(1, { is_provisional: false, risk_score: n % 100 }),
      ...(n % 5 === 0 ? [mark] : []),
      ...(n % 7 === 0 ? [split] : n % 11 === 0 ? [merger] : []),
    ]
  })
}

/** Returns the erasure of session `n` of `pastEvents`. */
export function pastErasure(
  { organizationId: organization_id }: { organizationId: string },
  n: number,
): DomainEvent {
  const visitor_id = id('vid', Math.floor(n / 4))
  const changed_visitor_ids = [visitor_id, movedTo(n) ?? visitor_id]
  const about = { organization_id, event_id: id('evt', n * 10 + 9), erasure_id: id('ers', n) }
  return {
    type: 'VisitorErased',
    data: visitorErased([pastSession(n)], { ...about, changed_visitor_ids }),
  }
}

/** Returns the expiry of sessions, decisions and visitors older than these days at `now`. */
export function pastExpiry(
  { organizationId: organization_id }: { organizationId: string },
  { now, days: [sessions, decisions, visitors] }: { now: number; days: [number, number, number] },
): DomainEvent {
  const data = {
    organization_id,
    sessions_before: now - sessions * day,
    decisions_before: now - decisions * day,
    visitors_before: now - visitors * day,
    webhooks_before: null,
    expired_at: now,
  }
  return { type: 'OrganizationDataExpired', data }
}
