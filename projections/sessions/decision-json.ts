import type { z } from 'zod'
import { iso, isoOrNull } from '../../infra/iso.ts'
import type {
  RequestContext,
  SessionAgent,
  SessionScored,
  SignalFired,
} from '../../schemas/events.ts'
import type { agent } from './decision-schemas.ts'
import type { DecisionRow, LinkedVisitor } from './tables.ts'

export function decisionJson(row: DecisionRow) {
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

export function linkJson(link: Omit<LinkedVisitor, 'method' | 'basis'>) {
  const { id, confidence, identified_at } = link
  return { id, confidence, identified_at: iso(identified_at) }
}

export function visitorLinkJson(visitor: LinkedVisitor) {
  return { object: 'visitor_fingerprint' as const, ...linkJson(visitor) }
}

export function requestJson({
  user_agent,
  url,
  screen_size,
  is_touch_capable,
  ip_address,
}: RequestContext) {
  return { user_agent, url, screen_size, is_touch_capable, ip_address }
}

export function signalJson({ signal, category, strength, signal_score }: SignalFired) {
  return { id: signal, category, confidence: strength, score: signal_score }
}

export function scoreBreakdownJson({ score_breakdown }: Pick<SessionScored, 'score_breakdown'>) {
  return { categories: score_breakdown }
}

/** Returns the attribution of a bot; null for other verdicts. */
export function visibleAttribution({
  verdict,
  attribution,
}: Pick<SessionScored, 'verdict' | 'attribution'>) {
  return { bot: verdict === 'bot' ? attribution : null }
}

export function agentJson(sessionAgent: SessionAgent): z.output<typeof agent> {
  if (!sessionAgent.evidence) return { ...sessionAgent, evidence: null }
  const { fetched_at, ...evidence } = sessionAgent.evidence
  return {
    ...sessionAgent,
    evidence: { ...evidence, fetched_at: isoOrNull(fetched_at) },
  }
}
