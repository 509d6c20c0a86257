import {
  boolean,
  bytes,
  countOrNull,
  documented,
  double,
  flagOrNull,
  int,
  listOf,
  mapOf,
  nullIfSealed,
  oneOf,
  orNull,
  record,
  string,
  strings,
  textOrNull,
  timestampMillis,
} from '../avro.ts'
import {
  browserRecord,
  clientTelemetryRecord,
  connectionFingerprintRecord,
  deviceRecord,
  networkRecord,
} from './session-scored-client.ts'
import {
  detailDeviceIdentity,
  nativeAppRecord,
  nativeCarrierRecord,
  nativeMotionPrintRecord,
  nativeRuntimeIntegrityRecord,
} from './session-scored-native.ts'

const environment = oneOf('Environment', ['live', 'test'], 'test')

const verdict = oneOf('Verdict', ['bot', 'human', 'inconclusive'], 'inconclusive')

const phase = oneOf('Phase', ['snapshot', 'behavioral'], 'snapshot')

const manipulationVerdict = oneOf('ManipulationVerdict', ['none', 'low', 'medium', 'high'], 'none')

const requestContext = record('RequestContext', {
  url: string,
  referrer: textOrNull,
  user_agent: string,
  ip_address: string,
  screen_size: textOrNull,
  is_touch_capable: flagOrNull,
})

const resolutionMethod = oneOf(
  'ResolutionMethod',
  [
    'continuity',
    'fingerprint',
    'fingerprint_evolution',
    'new',
    'native_persistent',
    'native_new',
    'existing',
    'unknown',
  ],
  'unknown',
)

const resolutionBasis = oneOf('ResolutionBasis', ['deterministic', 'probabilistic'], 'probabilistic')

const visitorStorage = record('VisitorStorage', {
  cookies: boolean,
  local_storage: boolean,
  indexed_db: boolean,
  service_worker: boolean,
  window_name: boolean,
})

const visitorAnchors = record('VisitorAnchors', {
  webgl_hash: textOrNull,
  parameters_hash: textOrNull,
  audio_hash: textOrNull,
})

const visitorLink = record(
  'VisitorLink',
  {
    id: string,
    confidence: countOrNull,
    identified_at: timestampMillis,
    method: resolutionMethod,
    basis: orNull(resolutionBasis),
    continuity_id: documented(textOrNull, 'The continuity id that leads to this visitor from now on.'),
    anchors: nullIfSealed(visitorAnchors),
    vector: nullIfSealed(listOf(double)),
    storage: nullIfSealed(visitorStorage),
  },
  { doc: 'How the session was linked to a visitor, and what the visitor read model needs.' },
)

const highlightEffect = oneOf('HighlightEffect', ['increases_risk', 'reduces_risk', 'context'], 'context')

const highlightImportance = oneOf('HighlightImportance', ['high', 'medium', 'low'], 'low')

const highlight = record('Highlight', {
  key: string,
  effect: highlightEffect,
  importance: highlightImportance,
  summary: string,
  evidence: orNull(listOf(record('HighlightEvidence', { signal: string, name: string }))),
})

const attributionKind = oneOf(
  'AttributionKind',
  ['actor', 'provider', 'tool', 'product', 'organization', 'purpose', 'environment', 'trust', 'evasion'],
  'actor',
)

const attributionLabel = record('AttributionLabel', {
  kind: attributionKind,
  value: string,
  label: string,
  confidence: int,
})

const behaviorChannel = oneOf(
  'BehaviorChannel',
  ['typing', 'form', 'mouse', 'touch', 'scroll', 'clipboard'],
  'form',
)

const attributionBehavior = record('AttributionBehavior', {
  channel: behaviorChannel,
  value: string,
  label: string,
  confidence: int,
})

const integrityLevel = oneOf('IntegrityLevel', ['clean', 'notice', 'elevated', 'high_risk'], 'clean')

const runtimeIntegrity = record('RuntimeIntegrity', {
  tampering_detected: integrityLevel,
  developer_tools_detected: integrityLevel,
  emulation_suspected: integrityLevel,
  virtualization_suspected: integrityLevel,
  privacy_hardening_suspected: integrityLevel,
  identity_spoofing_suspected: integrityLevel,
  replay_suspected: integrityLevel,
  outdated_environment: integrityLevel,
  verified_bot_identity: integrityLevel,
})

const analysisCoverage = record('AnalysisCoverage', {
  browser: boolean,
  device: boolean,
  network: boolean,
  runtime: boolean,
  behavioral: boolean,
  visitor_identity: boolean,
  attestation: documented(flagOrNull, 'Whether the device vouched for the app. Null for pages.'),
})

const signalFired = record('SignalFired', {
  signal: string,
  role: string,
  category: string,
  strength: string,
  channel: documented(string, 'What was observed: signals of one channel do not confirm each other.'),
  signal_score: int,
})

const sessionEvidence = record('SessionEvidence', {
  sources: documented(strings, 'What was consulted.'),
  unchecked: documented(strings, 'Members at their harmless value because nothing was consulted for them.'),
  missing: documented(strings, 'Members that the SDK always sends and did not.'),
  withheld: documented(
    listOf(record('WithheldPart', { group: string, reason: string })),
    'Parts of the snapshot that are not there, and why: blocked, unsupported, late.',
  ),
  impossible: documented(strings, 'Members whose values no browser has.'),
})

const handOff = record(
  'HandOffEvidence',
  { challenge_answered: boolean, input_observed: boolean, binding: textOrNull },
  { doc: 'What the document that handed off has shown.' },
)

const windowCounts = record('WindowCounts', { five_minutes: int, hour: int, day: int })

const repeats = record(
  'Repeats',
  {
    address_sessions: windowCounts,
    network_sessions: windowCounts,
    visitor_sessions: windowCounts,
    snapshot_sessions: windowCounts,
    behavior_sessions: windowCounts,
    address_visitors: windowCounts,
    visitor_addresses: windowCounts,
    visitor_users: windowCounts,
    user_visitors: windowCounts,
  },
  { doc: 'Counts over the windows that end with the decision, this session included.' },
)

const givenAnswers = record(
  'GivenAnswers',
  {
    engine: documented(textOrNull, 'Hash of the engine and version that the browser claims.'),
    engine_family: documented(
      textOrNull,
      "Engine that the browser claims: blink, gecko or webkit. The deployment's own questions are learned by it.",
    ),
    canvas_class: documented(
      textOrNull,
      'Hash of the renderer, system, browser and version that the browser claims.',
    ),
    canvas_seed: textOrNull,
    canvas_answer: documented(textOrNull, 'Hash of the answer.'),
    engine_answers: documented(mapOf(string), 'Hashes of the answers, by question.'),
    visitor_digest: documented(string, 'Under a key of the month that is deleted after it.'),
    network_digest: documented(string, 'Of the network (/24 or /48), under the same key.'),
    is_consistent: documented(
      boolean,
      'Whether nothing else spoke against the session: only then others learn of it.',
    ),
  },
  {
    doc: 'What a document answered, for others to learn from: nothing of it leads to the person, nor is a text of the client.',
  },
)

const members = {
  event_id: documented(string, 'The decision, evt_...; deterministic, so a retry repeats it.'),
  session_id: string,
  organization_id: string,
  environment,
  created_at: documented(timestampMillis, 'When the session was opened.'),
  evaluated_at: timestampMillis,
  observed_at: documented(
    timestampMillis,
    'When the client was last heard of; a decision made because it fell silent is later.',
  ),
  evaluation_duration_ms: int,
  scoring_version: string,
  verdict,
  risk_score: int,
  phase,
  is_provisional: boolean,
  manipulation: orNull(record('Manipulation', { score: int, verdict: manipulationVerdict })),
  score_breakdown: documented(mapOf(int), 'Points 0-100 by category.'),
  request: nullIfSealed(requestContext),
  visitor: orNull(visitorLink),
  highlights: listOf(highlight),
  attribution: orNull(
    record('Attribution', { labels: listOf(attributionLabel), behaviors: listOf(attributionBehavior) }),
  ),
  web_bot_auth: orNull(record('WebBotAuth', { status: textOrNull, domain: textOrNull })),
  network: nullIfSealed(networkRecord),
  runtime_integrity: runtimeIntegrity,
  connection_fingerprint: nullIfSealed(connectionFingerprintRecord),
  browser: nullIfSealed(browserRecord),
  device: nullIfSealed(deviceRecord),
  analysis_coverage: analysisCoverage,
  evidence: sessionEvidence,
  signals_fired: listOf(signalFired),
  client_telemetry: nullIfSealed(clientTelemetryRecord),
  native_runtime_integrity: orNull(nativeRuntimeIntegrityRecord),
  native_app: orNull(nativeAppRecord),
  native_carrier: orNull(nativeCarrierRecord),
  native_motion_print: orNull(nativeMotionPrintRecord),
  device_identity: orNull(detailDeviceIdentity),
  install_id: textOrNull,
  hand_off: documented(orNull(handOff), 'Null for a decision that no hand-off asked for.'),
  snapshot_hash: documented(textOrNull, 'SHA-256 of what the machine says of itself, hex.'),
  behavior_hash: documented(textOrNull, 'SHA-256 of the summary of input, hex; null with little input.'),
  repeats: documented(orNull(repeats), 'Null where nothing was counted.'),
  given_answers: documented(
    orNull(givenAnswers),
    'In the first decision about a page with a visitor, where it answered its document.',
  ),
  sealed: documented(
    orNull(bytes),
    "What the event says about a person, encrypted under the session's data key and bound to the event's id and its other fields; those fields are null then.",
  ),
}

/** Written as SessionScored.v1.avsc by `npm run schemas`. A change needs another version: an event is read for ever. */
export const sessionScored = record('SessionScored', members, {
  namespace: 'tidegate.sessions',
  doc: "One decision about a session, with everything that the session's detail shows, so that a reader needs no other topic.",
})
