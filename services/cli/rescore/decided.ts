import type { RecordedEvent } from '../../../infra/event-store/codec.ts'
import type { LogRecord } from '../../../infra/log/port.ts'
import { sessionFacts } from '../../../projections/sessions/facts.ts'
import type { MarkLabel, SessionScored } from '../../../schemas/events.ts'
import type { RecordedDecision } from './judge.ts'
import type { RehearsedSessions } from './rows.ts'

export const decidedTypes: ReadonlySet<string> = new Set([
  'SessionScored',
  'SessionMarked',
  'SessionUnmarked',
])

/**
 * The last decision about each session among the records that is of the time and the organization, with all that is no
 * decision. Nothing provisional follows a final one, so what is left out does not count.
 */
export function newestDecisions(records: LogRecord[], those: RehearsedSessions): LogRecord[] {
  const decisions = records.filter(
    ({ headers }) => headers.event_type === 'SessionScored' && isOf(headers, those),
  )
  const newest = new Set(new Map(decisions.map((record) => [record.key, record])).values())
  return records.filter((record) => record.headers.event_type !== 'SessionScored' || newest.has(record))
}

// The time of a decision is when its session was evaluated.
function isOf(headers: LogRecord['headers'], { since, until, organizationId }: RehearsedSessions): boolean {
  const time = Number(headers.event_time)
  return time >= since && time < until && [undefined, headers.organization_id].includes(organizationId)
}

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
  const {
    session_id,
    organization_id,
    evaluated_at,
    verdict,
    risk_score,
    network,
    repeats,
    agent,
    attestation,
  } = decision
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
    ...{ network, repeats, agent, attestation },
  }
}
