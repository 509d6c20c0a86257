import { type DecidedEvent, decidedEvent } from '../../infra/event-store/decide.ts'
import { derivedId } from '../../infra/ids.ts'
import type { PersonSession } from '../../projections/sessions/person.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'

export interface ErasureState {
  sessions: PersonSession[]
  /** Visitors of these sessions that have other sessions, too. */
  visitorsWithOtherSessions: Set<string>
  /** How many rows there are of the sessions, by kind. */
  counts: Record<string, number>
}

// An event of so many ids is 150 KB.
const maxSessions = 5000

/**
 * Several events where there are very many sessions, with the counts in the first; none where there are no sessions.
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
  const starts = Array.from({ length: Math.ceil(state.sessions.length / maxSessions) }, (_, i) => i)
  return starts.map((i) => {
    const sessions = state.sessions.slice(i * maxSessions, (i + 1) * maxSessions)
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
