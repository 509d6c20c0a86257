import type { DomainEvent, RecordedEvent } from '../../../infra/event-store/event.ts'
import type { CountedSession } from '../../../projections/repeats/counted-sessions.ts'
import type { Environment } from '../../../schemas/events.ts'
import { sessionScored, visitorLink } from '../../support/session-scored.ts'
import { type At, recordedIn } from '../read-model.ts'
import { id } from '../world-events.ts'

export { repeatsProjection } from '../../../projections/repeats/projection.ts'
export const topic = 'tidegate.sessions.v1'
export const start = Date.UTC(2026, 2, 24, 12)

/** Overrides of a session's default values. Times are epoch milliseconds. */
export interface About {
  session: number
  organization?: number
  environment?: Environment
  ip?: string
  visitor?: number | null
  /** A number is turned into a hash; a string is the hash. */
  snapshot?: number | string | null
  behavior?: number | string | null
  at?: number
  observed?: number
}

const hashOf = (kind: string, n: number | string | null) =>
  typeof n === 'number' ? `${kind} ${n}` : n

function partsOf(about: About) {
  const { session, organization = 1, environment = 'live', at = start } = about
  const { ip = '203.0.113.9', visitor = 1, snapshot = 1, behavior = 1 } = about
  return {
    session_id: id('sid', session),
    organization_id: id('org', organization),
    environment,
    at,
    ip,
    visitor: visitor === null ? null : id('vid', visitor),
    snapshot_hash: hashOf('snapshot', snapshot),
    behavior_hash: hashOf('behavior', behavior),
  }
}

export function askedAbout(about: About): CountedSession {
  const { at, ip, visitor, ...rest } = partsOf(about)
  return { ...rest, at, opened_at: at, ip_address: ip, visitor_id: visitor }
}

let made = 0

/** Returns the decision of the session. */
export function opened(about: About): DomainEvent {
  const { at, ip, visitor, ...rest } = partsOf(about)
  const plain = sessionScored()
  const data = sessionScored({
    ...rest,
    event_id: id('evt', made++),
    created_at: at,
    observed_at: about.observed ?? at,
    request: { ...plain.request, ip_address: ip },
    visitor: visitor === null ? null : visitorLink({ id: visitor }),
  })
  return { type: 'SessionScored', data }
}

const changeOf = (session: number) => {
  const { session_id, organization_id, environment } = partsOf({ session })
  return { session_id, organization_id, environment, event_id: id('evt', made++) }
}

interface Attached {
  session: number
  user: string
  at: number
}

export function attached({ session, user, at }: Attached): DomainEvent {
  const data = { ...changeOf(session), client_user_id: user, attached_at: at }
  return { type: 'ClientUserAttached', data }
}

export function cleared({ session, at }: { session: number; at: number }): DomainEvent {
  return { type: 'ClientUserCleared', data: { ...changeOf(session), cleared_at: at } }
}

const recordedInTopic = recordedIn(topic)

/** Returns the recorded event, with its own id. */
export const recorded = (event: DomainEvent, at: At = {}): RecordedEvent =>
  recordedInTopic(event, 'event_id' in event.data ? { id: event.data.event_id, ...at } : at)
