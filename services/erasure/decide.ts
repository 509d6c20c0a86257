import { type DecidedEvent, decidedEvent } from '../../infra/event-store/decide.ts'
import { derivedId } from '../../infra/ids.ts'
import type { PersonSession } from '../../projections/sessions/person.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'

export interface ErasureState {
  sessions: PersonSession[]
  /** Visitors of these sessions that also have other sessions. */
  visitorsWithOtherSessions: Set<string>
  /** Numbers of rows to erase, by kind. */
  counts: Record<string, number>
}

// An event with this many session ids is about 150 KB.
const maxSessionsPerEvent = 5000

/**
 * Returns one event per 5,000 sessions, none without sessions. Only the first has the visitors and counts.
 * Either `visitorId` or `userDigest` is null.
 */
export function decideErasure(
  state: ErasureState,
  command: {
    scope: DataScope
    erasureId: string
    visitorId: string | null
    userDigest: string | null
    now: number
  },
): DecidedEvent[] {
  const { organizationId, environment } = command.scope
  const visitors = new Set(state.sessions.flatMap(({ visitor_id }) => visitor_id ?? []))
  const changed = [...visitors].filter((id) => state.visitorsWithOtherSessions.has(id))
  const erased = [...visitors].filter((id) => !state.visitorsWithOtherSessions.has(id))
  const counts = { sessions: state.sessions.length, visitors: erased.length, ...state.counts }
  const length = Math.ceil(state.sessions.length / maxSessionsPerEvent)
  return Array.from({ length }, (_, i) => {
    const sessions = state.sessions.slice(i * maxSessionsPerEvent, (i + 1) * maxSessionsPerEvent)
    const eventId = derivedId('evt', command.erasureId, String(i))
    const data = {
      event_id: eventId,
      organization_id: organizationId,
      environment,
      erasure_id: command.erasureId,
      visitor_id: command.visitorId,
      user_digest: command.userDigest,
      session_ids: sessions.map(({ session_id }) => session_id),
      erased_visitor_ids: i === 0 ? erased : [],
      changed_visitor_ids: i === 0 ? changed : [],
      counts: i === 0 ? counts : {},
      erased_at: command.now,
    }
    return decidedEvent(
      { type: 'VisitorErased', data },
      { organizationId, environment, eventId, now: command.now },
    )
  })
}
