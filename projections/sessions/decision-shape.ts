import type { z } from 'zod'
import type {
  RequestContext,
  SessionAgent,
  SessionScored,
  SignalFired,
} from '../../schemas/events.ts'
import type { agent } from './decision-schemas.ts'
import type { DecisionRow, LinkedVisitor } from './tables.ts'

/** Epoch milliseconds as the API shows them: ISO 8601, UTC, milliseconds. */
export function iso(time: number): string {
  return new Date(time).toISOString()
}

export function decisionOf(row: DecisionRow) {
  return {
    event_id: row.event_id,
    verdict: row.verdict,
    risk_score: row.risk_score,
    phase: row.phase,
    is_provisional: row.is_provisional,
    manipulation: row.manipulation,
    evaluation_duration_ms: row.evaluation_duration_ms,
    evaluated_at: iso(row.evaluated_at),
  }
}

export function linkOf({ id, confidence, identified_at }: Omit<LinkedVisitor, 'method' | 'basis'>) {
  return { id, confidence, identified_at: iso(identified_at) }
}

export function visitorLinkOf(visitor: LinkedVisitor) {
  return { object: 'visitor_fingerprint' as const, ...linkOf(visitor) }
}

export function requestOf({
  user_agent,
  url,
  screen_size,
  is_touch_capable,
  ip_address,
}: RequestContext) {
  return { user_agent, url, screen_size, is_touch_capable, ip_address }
}

export function signalOf({ signal, category, strength, signal_score }: SignalFired) {
  return { id: signal, category, confidence: strength, score: signal_score }
}

export function scoreBreakdownOf({ score_breakdown }: Pick<SessionScored, 'score_breakdown'>) {
  return { categories: score_breakdown }
}

/** Only a bot is attributed to somebody. */
export function visibleAttribution({
  verdict,
  attribution,
}: Pick<SessionScored, 'verdict' | 'attribution'>) {
  return { bot: verdict === 'bot' ? attribution : null }
}

export function agentJson(found: SessionAgent): z.output<typeof agent> {
  if (!found.evidence) return { ...found, evidence: null }
  const { fetched_at, ...evidence } = found.evidence
  return {
    ...found,
    evidence: { ...evidence, fetched_at: fetched_at === null ? null : iso(fetched_at) },
  }
}
