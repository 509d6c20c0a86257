import type { EventMeta, TrafficEvent } from '../../infra/event-store/event.ts'
import type { Browser, ClientTelemetry, SessionScored } from '../../schemas/events.ts'
import { type Snapshot, snapshotSchema } from '../../schemas/observations.ts'
import type { Trigger } from './decide.ts'
import { deviceOf, isTouchCapable, nativeDetailOf, screenSize } from './device.ts'
import { attribute } from './explain/attribution.ts'
import { evidenceOf, type ScoredMembers } from './explain/evidence.ts'
import { manipulationOf, runtimeIntegrityOf } from './explain/findings.ts'
import { highlightsOf } from './explain/highlights.ts'
import { type AnsweringSession, givenAnswersOf } from './given-answers.ts'
import { signatureOutcomeOf } from './identity/outcomes.ts'
import { modelId, standardModel } from './model/model.ts'
import { type Facts, hasAnsweredChallenge, mostSpecificBrand } from './session/facts.ts'
import type { SessionState } from './session/state.ts'
import type { RepeatHashes } from './signals/repeats.ts'

interface ScoredDecision extends AnsweringSession {
  state: SessionState
  trigger: Trigger
  traceparent?: string | undefined
  hashes: RepeatHashes
  evaluatedAt: number
  durationMs: number
}

export function scoredEvent(decision: ScoredDecision): { event: TrafficEvent; meta: EventMeta } {
  const { state, trigger, traceparent, evaluatedAt } = decision
  const { organization_id: organizationId, environment } = state
  return {
    event: { type: 'SessionScored', data: sessionScored(decision) },
    meta: {
      eventId: trigger.decisionId,
      time: evaluatedAt,
      organizationId,
      environment,
      traceparent,
    },
  }
}

function sessionScored(decision: ScoredDecision): SessionScored {
  const { state, trigger, evaluation, visitor } = decision
  const { model, facts, fired, score } = evaluation
  const { sources: _, ...network } = facts.network
  const native = nativeDetailOf(facts)
  const runtime_integrity = runtimeIntegrityOf(fired, facts)
  const members = { ...native, visitor, runtime_integrity }
  return {
    event_id: trigger.decisionId,
    session_id: state.session_id,
    organization_id: state.organization_id,
    environment: state.environment,
    created_at: state.created_at,
    evaluated_at: decision.evaluatedAt,
    observed_at: state.last_activity_at,
    evaluation_duration_ms: decision.durationMs,
    scoring_version: standardModel.version,
    verdict: score.verdict,
    risk_score: score.risk,
    phase: facts.hasInput ? 'behavioral' : 'snapshot',
    is_provisional: !trigger.final,
    manipulation: manipulationOf(fired, facts),
    score_breakdown: score.breakdown,
    request: requestOf(state, facts),
    visitor,
    highlights: highlightsOf(evaluation),
    attribution: attribute(fired, facts, score.verdict === 'bot'),
    web_bot_auth: webBotAuthOf(facts),
    network,
    runtime_integrity,
    connection_fingerprint: connectionOf(facts),
    browser: browserOf(facts),
    device: deviceOf(facts),
    analysis_coverage: coverageOf(facts, members),
    evidence: evidenceOf(facts, members),
    signals_fired: fired.map(({ slug, role, category, strength, channel, points }) => ({
      signal: slug,
      role,
      category,
      strength,
      channel,
      signal_score: points,
    })),
    client_telemetry: telemetryOf(facts.snapshot),
    ...native,
    hand_off: handOffOf(state, trigger, facts),
    ...decision.hashes,
    repeats: facts.repeats,
    given_answers: trigger.final && !state.final ? givenAnswersOf(decision) : null,
    key_id: state.key_id ?? null,
    // Without its opening event a session's platform is only a default.
    platform: state.sdk ? state.platform : null,
    sdk: state.sdk ?? null,
    has_snapshot: facts.snapshot !== null,
    reason: trigger.reason,
    model: modelId(model),
    agent: facts.identity,
    attestation: facts.attestation,
  }
}

// Returns null for a decision that no hand-off triggered.
function handOffOf(
  state: SessionState,
  { handOffDocument }: Trigger,
  facts: Facts,
): SessionScored['hand_off'] {
  const document = state.documents.find(({ hash }) => hash === handOffDocument)
  if (!document) return null
  const hasSnapshot = facts.snapshot !== null && state.snapshot_document === document.hash
  return {
    challenge_answered: hasSnapshot && hasAnsweredChallenge(facts),
    input_observed: (document.inputs ?? 0) > 0,
    binding: document.binding ?? null,
  }
}

function requestOf(state: SessionState, { document, snapshot }: Facts): SessionScored['request'] {
  const latest = state.documents.at(-1) ?? document
  return {
    url: latest?.url ?? '',
    referrer: latest?.referrer ?? null,
    user_agent: state.user_agent,
    ip_address: state.ip_address,
    screen_size: screenSize(snapshot),
    is_touch_capable: isTouchCapable(snapshot),
  }
}

// Returns null without any of the three Web Bot Auth headers. `absent` means that only some are missing.
function webBotAuthOf({ document }: Facts): SessionScored['web_bot_auth'] {
  const outcome = document && signatureOutcomeOf(document)
  if (!outcome) return null
  const { status } = outcome
  return { status: status === 'valid' ? 'verified' : status, domain: document.signature_agent }
}

// Returns the TLS and HTTP/2 fingerprints of the snapshot's document, as reported by the edge.
function connectionOf(facts: Facts): SessionScored['connection_fingerprint'] {
  const { ja4 = null, http2_fingerprint = null } = facts.document ?? {}
  const { client, source, alignment } = facts.handshake
  return {
    ja4: {
      hash: ja4,
      profile: null,
      family: client?.family ?? null,
      product: client?.product ?? null,
      confidence: client && (source === 'recorded' ? 'exact' : 'learned'),
      match_source: client && 'ja4_bc',
      deterministic: null,
      reference: null,
    },
    http2: { akamai_fingerprint: http2_fingerprint, profile: null },
    user_agent_alignment: alignment,
  }
}

function coverageOf(facts: Facts, members: ScoredMembers): SessionScored['analysis_coverage'] {
  const { snapshot } = facts
  const { visitor, native_runtime_integrity: native } = members
  return {
    browser: snapshot !== null && snapshot.navigator.user_agent !== null,
    device:
      snapshot !== null &&
      (screenSize(snapshot) !== null || (snapshot.native?.device_model ?? null) !== null),
    network: facts.network.status === 'ready',
    runtime: native !== null || (snapshot?.automation.webdriver ?? null) !== null,
    behavioral: facts.hasInput,
    visitor_identity: visitor !== null,
    attestation: facts.platform === 'web' ? null : facts.attestation?.status === 'valid',
  }
}

const emptySnapshot: Snapshot = snapshotSchema.parse({})

function telemetryOf(snapshot: Snapshot | null): ClientTelemetry {
  const observed = snapshot ?? emptySnapshot
  const { detected: _, ...fonts } = observed.fonts
  return {
    navigator: navigatorOf(observed),
    storage: observed.storage,
    canvas: observed.canvas,
    graphics: { webgl: observed.webgl, webgpu: observed.webgpu },
    audio: observed.audio,
    fonts,
    media: observed.media,
  }
}

function navigatorOf({ navigator }: Snapshot): ClientTelemetry['navigator'] {
  return {
    platform: navigator.platform,
    vendor: navigator.vendor,
    hardware_concurrency: navigator.hardware_concurrency,
    device_memory: navigator.device_memory,
    max_touch_points: navigator.max_touch_points,
    pdf_viewer_enabled: navigator.pdf_viewer_enabled,
    cookie_enabled: navigator.cookie_enabled,
    product_sub: navigator.product_sub,
    primary_language: navigator.language,
    languages: navigator.languages,
    mime_types_count: navigator.mime_types_count,
    plugins: navigator.plugins,
  }
}

export function browserOf(facts: Facts): Browser {
  const { agent, snapshot } = facts
  const unnamed = { name: null, version: null, major_version: null }
  if (snapshot?.native) return { ...unnamed, engine: 'native', app_name: snapshot.native.bundle_id }
  const brand = mostSpecificBrand(facts)
  const version = snapshot?.navigator.ua_full_version ?? brand?.version ?? agent.version
  return {
    name: brand?.brand ?? agent.browser,
    version,
    major_version: version?.split('.')[0] ?? null,
    engine: agent.engine,
    app_name: agent.appName,
  }
}
