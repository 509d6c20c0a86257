import type {
  Environment,
  Manipulation,
  Phase,
  RequestContext,
  SessionScored,
  Verdict,
  VisitorAnchors,
  VisitorLink,
  VisitorStorage,
} from '../../schemas/events.ts'
import type { StoredDetail } from './detail.ts'

/** Whose data: nothing outside it is ever found. */
export interface Scope {
  organizationId: string
  environment: Environment
}

/** A decision in a few fields. `evaluated_at` is epoch milliseconds, as every time in these rows. */
export interface DecisionRow {
  event_id: string
  verdict: Verdict
  risk_score: number
  phase: Phase
  is_provisional: boolean
  manipulation: Manipulation | null
  evaluation_duration_ms: number
  evaluated_at: number
}

export type LinkedVisitor = Pick<VisitorLink, 'id' | 'confidence' | 'identified_at' | 'method' | 'basis'>

export interface SessionRow {
  id: string
  created_at: number
  client_user_id: string | null
  latest_decision: DecisionRow
  visitor: LinkedVisitor | null
}

export interface VisitorLifecycle {
  first_seen_at: number
  last_seen_at: number
  /** Distinct sessions. */
  seen_count: number
}

/** A decision among others of its session. */
export type DecisionSummary = Omit<DecisionRow, 'manipulation' | 'evaluation_duration_ms'>

export interface SessionDetailRow {
  id: string
  created_at: number
  client_user_id: string | null
  decision: DecisionSummary
  /** Newest first, at most `maxShownDecisions`. */
  previous_decisions: DecisionSummary[]
  visitor: LinkedVisitor | null
  /** As of now, not as of the decision; null without a visitor. */
  lifecycle: VisitorLifecycle | null
  /** What the event of the latest decision says. */
  detail: StoredDetail
}

/** What is kept of every decision, beside its few fields, for hand-offs and visitor activity. */
export interface DecisionEvidence {
  request: RequestContext
  score_breakdown: Record<string, number>
  visitor: LinkedVisitor | null
  signals_fired: SessionScored['signals_fired']
  attribution: SessionScored['attribution']
}

export interface FullDecisionRow extends DecisionRow, DecisionEvidence {
  session_id: string
  organization_id: string
  environment: Environment
}

export interface VisitorRow extends VisitorLifecycle {
  id: string
  latest_request: { user_agent: string; ip_address: string }
  storage: VisitorStorage
  anchors: VisitorAnchors
}

export interface VisitorActivityRow {
  session_id: string
  decision: DecisionRow
  request: RequestContext
  score_breakdown: Record<string, number>
}

export interface VisitorDetailRow extends VisitorRow {
  vector: number[]
  /** Newest first, at most 100. */
  activity: VisitorActivityRow[]
}
