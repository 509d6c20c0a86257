import type { DomainEvent, EventMeta } from '../../infra/event-store/codec.ts'
import type { SessionScored, VisitorLink } from '../../schemas/events.ts'
import type { Trigger } from './decide-session.ts'
import { browserOf } from './detail/browser.ts'
import { deviceOf, isTouchCapable, screenSize } from './detail/device.ts'
import { nativeDetailOf } from './detail/native.ts'
import { telemetryOf } from './detail/telemetry.ts'
import type { Evaluation } from './evaluate.ts'
import { attributionOf } from './explain/attribution.ts'
import { highlightsOf } from './explain/highlights.ts'
import { manipulationOf, runtimeIntegrityOf } from './explain/integrity.ts'
import type { Facts } from './facts.ts'
import { scoringVersion } from './score.ts'
import type { SessionState } from './session-state.ts'

export interface Decision {
  state: SessionState
  trigger: Trigger
  evaluation: Evaluation
  visitor: VisitorLink | null
  evaluatedAt: number
  durationMs: number
}

/** The decision as an event that carries all of the session's detail. */
export function scoredEvent(decision: Decision): { event: DomainEvent; meta: EventMeta } {
  const { state, trigger, evaluatedAt } = decision
  const { organization_id: organizationId, environment } = state
  return {
    event: { type: 'SessionScored', data: sessionScored(decision) },
    meta: { eventId: trigger.decisionId, time: evaluatedAt, organizationId, environment },
  }
}

function sessionScored(decision: Decision): SessionScored {
  const { state, trigger, evaluation, visitor } = decision
  const { facts, fired, score } = evaluation
  return {
    event_id: trigger.decisionId,
    session_id: state.session_id,
    organization_id: state.organization_id,
    environment: state.environment,
    created_at: state.created_at,
    evaluated_at: decision.evaluatedAt,
    observed_at: state.last_activity_at,
    evaluation_duration_ms: decision.durationMs,
    scoring_version: scoringVersion,
    verdict: score.verdict,
    risk_score: score.risk,
    phase: facts.behavioral ? 'behavioral' : 'snapshot',
    is_provisional: !trigger.final,
    manipulation: manipulationOf(fired, facts),
    score_breakdown: score.breakdown,
    request: requestOf(state, facts),
    visitor,
    highlights: highlightsOf(fired, facts),
    attribution: attributionOf(fired, facts, score.verdict === 'bot'),
    web_bot_auth: webBotAuthOf(facts),
    network: facts.network,
    runtime_integrity: runtimeIntegrityOf(fired, facts),
    connection_fingerprint: unknownConnection,
    browser: browserOf(facts),
    device: deviceOf(facts),
    analysis_coverage: coverageOf(facts, visitor),
    signals_fired: fired.map(({ slug, role, category, strength, score: points }) => ({
      signal: slug,
      role,
      category,
      strength,
      signal_score: points,
    })),
    client_telemetry: telemetryOf(facts.snapshot),
    ...nativeDetailOf(facts),
  }
}

function requestOf(state: SessionState, { document, snapshot }: Facts): SessionScored['request'] {
  const newest = state.documents.at(-1) ?? document
  return {
    url: newest?.url ?? '',
    referrer: newest?.referrer ?? null,
    user_agent: state.user_agent,
    ip_address: state.ip_address,
    screen_size: screenSize(snapshot),
    is_touch_capable: isTouchCapable(snapshot),
  }
}

/**
 * Signed requests cannot be verified here: their keys are unknown. `absent` = an agent is named and nothing is
 * signed; null without any of the headers.
 */
function webBotAuthOf({ document }: Facts): SessionScored['web_bot_auth'] {
  const has = (name: string) =>
    document?.header_order.some((header) => header.toLowerCase() === name) === true
  const signed = has('signature') || has('signature-input')
  if (!document || !(signed || has('signature-agent'))) return null
  return { status: signed ? 'unknown_key' : 'absent', domain: document.signature_agent }
}

/** TLS and HTTP/2 end before the service, so that neither is seen. */
const unknownConnection: SessionScored['connection_fingerprint'] = {
  ja4: {
    hash: null,
    profile: null,
    family: null,
    product: null,
    confidence: null,
    match_source: null,
    deterministic: null,
    reference: null,
  },
  http2: { akamai_fingerprint: null, profile: null },
  user_agent_alignment: 'unknown',
}

function coverageOf(facts: Facts, visitor: VisitorLink | null): SessionScored['analysis_coverage'] {
  const { snapshot } = facts
  return {
    browser: snapshot !== null && snapshot.navigator.user_agent !== null,
    device: snapshot !== null && (screenSize(snapshot) !== null || snapshot.native !== null),
    network: facts.network.status === 'ready',
    runtime: snapshot !== null && (snapshot.automation.webdriver !== null || snapshot.native !== null),
    behavioral: facts.behavioral,
    visitor_identity: visitor !== null,
  }
}
