import { type DecidedEvent, decidedEvent } from '../../infra/event-store/decide.ts'
import { derivedId } from '../../infra/ids.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import type { SessionVisitor } from '../../projections/sessions/selected-sessions.ts'

export interface ErasureState {
  sessions: SessionVisitor[]
  /** Visitors that also have sessions not in `sessions`. */
  visitorsWithOtherSessions: Set<string>
  /** Number of rows to erase, by kind of row. */
  counts: Record<string, number>
}

// An event with this many session ids is about 150 KB.
const maxSessionsPerEvent = 5000

/**
 * Returns one event per 5,000 sessions. Only the first event has the visitors and counts. At most one of `visitorId` and
 * `userDigest` is set.
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
  const visitorIds = new Set(state.sessions.flatMap(({ visitor_id }) => visitor_id ?? []))
  const changedIds = [...visitorIds].filter((id) => state.visitorsWithOtherSessions.has(id))
  const erasedIds = [...visitorIds].filter((id) => !state.visitorsWithOtherSessions.has(id))
  const counts = { sessions: state.sessions.length, visitors: erasedIds.length, ...state.counts }
  const eventCount = Math.ceil(state.sessions.length / maxSessionsPerEvent)
  return Array.from({ length: eventCount }, (_, i) => {
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
      erased_visitor_ids: i === 0 ? erasedIds : [],
      changed_visitor_ids: i === 0 ? changedIds : [],
      counts: i === 0 ? counts : {},
      erased_at: command.now,
    }
    return decidedEvent(
      { type: 'VisitorErased', data },
      { organizationId, environment, eventId, now: command.now },
    )
  })
}
