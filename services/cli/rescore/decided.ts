import type { RecordedEvent } from '../../../infra/event-store/codec.ts'
import { sessionFacts } from '../../../projections/sessions/facts.ts'
import type { MarkLabel, SessionScored } from '../../../schemas/events.ts'
import type { RecordedDecision } from './judge.ts'
import type { RehearsedSessions } from './rows.ts'

export const decidedTypes: ReadonlySet<string> = new Set([
  'SessionScored',
  'SessionMarked',
  'SessionUnmarked',
])

interface Mark {
  id: string
  label: MarkLabel
}

/** Gathers the newest final decision about each session, with its mark, from the events of the topic in their order. */
export function gatherDecided(those: RehearsedSessions) {
  const decided = new Map<string, RecordedDecision | 'erased'>()
  const marks = new Map<string, Mark[]>()

  function add({ type, data, unreadable }: RecordedEvent): void {
    if (type === 'SessionScored' && isAmong(data, those))
      decided.set(data.session_id, unreadable === undefined ? recordedOf(data) : 'erased')
    if (type === 'SessionMarked') {
      const { session_id, mark_id: id, label } = data
      marks.set(session_id, [...marksOf(session_id, id), { id, label }])
    }
    if (type === 'SessionUnmarked') marks.set(data.session_id, marksOf(data.session_id, data.mark_id))
  }

  const marksOf = (sessionId: string, without: string) =>
    (marks.get(sessionId) ?? []).filter(({ id }) => id !== without)

  function result(): Map<string, RecordedDecision | 'erased'> {
    for (const [sessionId, one] of decided)
      if (one !== 'erased') one.row.mark = marks.get(sessionId)?.at(-1)?.label ?? null
    return decided
  }
  return { add, result }
}

function isAmong(decision: SessionScored, { since, until, ...those }: RehearsedSessions): boolean {
  const { evaluated_at: at, organization_id: organizationId, environment } = decision
  if (decision.is_provisional || at < since || at >= until) return false
  const { organizationId: whose = organizationId, environment: of = environment } = those
  return whose === organizationId && of === environment
}

function recordedOf(decision: SessionScored): RecordedDecision {
  const { session_id, organization_id, evaluated_at, verdict, risk_score, network, repeats } = decision
  const { browser, country, page_host, has_snapshot, signals } = sessionFacts(decision)
  return {
    row: {
      ...{ session_id, organization_id, evaluated_at, verdict, risk_score, browser, country, page_host },
      ...{ has_snapshot, mark: null, signals: (signals ?? []).join(' ') },
      // Events of before 0.2.0 name no model: there was one of each version.
      model: decision.model ?? `tidegate-${decision.scoring_version}`,
    },
    decisionId: decision.event_id,
    openedAt: decision.created_at,
    ...{ network, repeats },
  }
}
