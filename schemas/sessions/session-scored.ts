import {
  type AvroMember,
  boolean,
  bytes,
  countOrNull,
  documented,
  double,
  flagOrNull,
  int,
  listOf,
  mapOf,
  oneOf,
  orNull,
  record,
  string,
  strings,
  textOrNull,
  textsOrNull,
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

// The order of two members of the published file, which stays as it is byte for byte.
const defaultFirst = (member: AvroMember): AvroMember => ({ default: null, ...member })

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

const visitorLink = record(
  'VisitorLink',
  {
    id: string,
    confidence: countOrNull,
    identified_at: timestampMillis,
    method: resolutionMethod,
    basis: orNull(resolutionBasis),
    continuity_id: documented(textOrNull, 'The continuity id that leads to this visitor from now on.'),
    anchors: record('VisitorAnchors', {
      webgl_hash: textOrNull,
      parameters_hash: textOrNull,
      audio_hash: textOrNull,
    }),
    vector: listOf(double),
    storage: visitorStorage,
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

const coverage = {
  browser: boolean,
  device: boolean,
  network: boolean,
  runtime: boolean,
  behavioral: boolean,
  visitor_identity: boolean,
}

const signalFired = record('SignalFired', {
  signal: string,
  role: string,
  category: string,
  strength: string,
  signal_score: int,
})

const firstMembers = {
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
  manipulation: defaultFirst(orNull(record('Manipulation', { score: int, verdict: manipulationVerdict }))),
  score_breakdown: documented(mapOf(int), 'Points 0-100 by category.'),
  request: requestContext,
  visitor: defaultFirst(orNull(visitorLink)),
  highlights: listOf(highlight),
  attribution: orNull(
    record('Attribution', { labels: listOf(attributionLabel), behaviors: listOf(attributionBehavior) }),
  ),
  web_bot_auth: orNull(record('WebBotAuth', { status: textOrNull, domain: textOrNull })),
  network: networkRecord,
  runtime_integrity: runtimeIntegrity,
  connection_fingerprint: connectionFingerprintRecord,
  browser: browserRecord,
  device: deviceRecord,
  analysis_coverage: record('AnalysisCoverage', coverage),
  signals_fired: listOf(signalFired),
  client_telemetry: clientTelemetryRecord,
  native_runtime_integrity: orNull(nativeRuntimeIntegrityRecord),
  native_app: orNull(nativeAppRecord),
  native_carrier: orNull(nativeCarrierRecord),
  native_motion_print: orNull(nativeMotionPrintRecord),
  device_identity: orNull(detailDeviceIdentity),
  install_id: textOrNull,
}

const sessionEvidence = record('SessionEvidence', {
  sources: documented(strings, 'What was consulted.'),
  unchecked: documented(strings, 'Members at their harmless value because nothing was consulted for them.'),
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

const answered = {
  document_id_hash: string,
  engine: documented(textOrNull, 'Engine and version that the browser claims: whose answers these are.'),
  canvas_class: documented(textOrNull, 'Renderer, system, browser and version that the browser claims.'),
  canvas_seed: textOrNull,
  canvas_answer: textOrNull,
  engine_answers: documented(mapOf(string), 'By question.'),
  is_consistent: documented(
    boolean,
    'Whether nothing else spoke against the session: only then others learn of it.',
  ),
}

const answersOf = (members: Record<string, AvroMember>) =>
  record('ChallengeAnswers', members, {
    doc: 'What a document answered, for the read model of answers to learn from.',
  })
const challengeAnswers = answersOf(answered)
const fourthAnswers = answersOf({
  ...answered,
  network_digest: documented(textOrNull, 'Of the network (/24 or /48): what others learn counts networks.'),
})

const given = {
  engine: documented(textOrNull, 'Hash of the engine and version that the browser claims.'),
  canvas_class: documented(
    textOrNull,
    'Hash of the renderer, system, browser and version that the browser claims.',
  ),
  canvas_seed: textOrNull,
  canvas_answer: documented(textOrNull, 'Hash of the answer.'),
  engine_answers: documented(mapOf(string), 'Hashes of the answers, by question.'),
  visitor_digest: documented(string, 'Under a key of the month that is deleted after it.'),
  network_digest: documented(string, 'Of the network (/24 or /48), under the same key.'),
  is_consistent: answered.is_consistent,
}

const givenOf = (members: Record<string, AvroMember>) =>
  record('GivenAnswers', members, {
    doc: 'What a document answered, for others to learn from: nothing of it leads to the person, nor is a text of the client.',
  })
const givenAnswers = givenOf(given)
const sixthAnswers = givenOf({
  ...given,
  engine_family: documented(
    textOrNull,
    "Engine that the browser claims: blink, gecko or webkit. The deployment's own questions are learned by it. Null before version 6.",
  ),
})

const about = {
  namespace: 'tidegate.sessions',
  doc: "One decision about a session, with everything that the session's detail shows, so that a reader needs no other topic.",
}

const thirdEvidence = record('SessionEvidence', {
  sources: documented(strings, 'What was consulted.'),
  unchecked: documented(strings, 'Members at their harmless value because nothing was consulted for them.'),
  missing: documented(textsOrNull, 'Members that the SDK always sends and did not. Null before version 3.'),
  impossible: documented(textsOrNull, 'Members whose values no browser has. Null before version 3.'),
})

const sixthEvidence = record('SessionEvidence', {
  sources: documented(strings, 'What was consulted.'),
  unchecked: documented(strings, 'Members at their harmless value because nothing was consulted for them.'),
  missing: documented(textsOrNull, 'Members that the SDK always sends and did not. Null before version 3.'),
  withheld: documented(
    orNull(listOf(record('WithheldPart', { group: string, reason: string }))),
    'Parts of the snapshot that are not there, and why: blocked, unsupported, late. Null before version 6.',
  ),
  impossible: documented(textsOrNull, 'Members whose values no browser has. Null before version 3.'),
})

const secondMembers = {
  ...firstMembers,
  evidence: documented(orNull(sessionEvidence), 'Null in events of before version 2.'),
  hand_off: documented(orNull(handOff), 'Null for a decision that no hand-off asked for.'),
}

const thirdMembers = {
  ...secondMembers,
  evidence: documented(orNull(thirdEvidence), 'Null in events of before version 2.'),
  analysis_coverage: record('AnalysisCoverage', {
    ...coverage,
    attestation: documented(
      flagOrNull,
      'Whether the device vouched for the app. Null for pages, and before version 3.',
    ),
  }),
  snapshot_hash: documented(textOrNull, 'SHA-256 of what the machine says of itself, hex.'),
  behavior_hash: documented(textOrNull, 'SHA-256 of the summary of input, hex; null with little input.'),
  repeats: documented(orNull(repeats), 'Null where nothing was counted.'),
  challenge_answers: documented(
    orNull(challengeAnswers),
    'In the first decision about a page, where it answered its document.',
  ),
}

const sealedMember = (doc: string) => documented(orNull(bytes), doc)

const fourthMembers = {
  ...thirdMembers,
  challenge_answers: documented(
    orNull(fourthAnswers),
    'In the first decision about a page, where it answered its document.',
  ),
}

const fifthMembers = {
  ...fourthMembers,
  challenge_answers: documented(orNull(fourthAnswers), 'Null from version 5 on.'),
  given_answers: documented(
    orNull(givenAnswers),
    'In the first decision about a page with a visitor, where it answered its document. Null before version 5.',
  ),
  sealed: sealedMember(
    "What the event says about a person, encrypted under the session's data key and bound to the event's id and its other fields; those fields are blank then.",
  ),
}

/**
 * Written as SessionScored.v1.avsc to .v6.avsc by `npm run schemas`. A change needs another version: an event is read
 * for ever.
 */
export const sessionScored = [
  record('SessionScored', firstMembers, about),
  record('SessionScored', secondMembers, about),
  record('SessionScored', thirdMembers, about),
  record(
    'SessionScored',
    {
      ...fourthMembers,
      sealed: sealedMember(
        "What the event says about a person, encrypted under the session's data key; those fields are blank then.",
      ),
    },
    about,
  ),
  record('SessionScored', fifthMembers, about),
  record(
    'SessionScored',
    {
      ...fifthMembers,
      evidence: documented(orNull(sixthEvidence), 'Null in events of before version 2.'),
      given_answers: documented(
        orNull(sixthAnswers),
        'In the first decision about a page with a visitor, where it answered its document. Null before version 5.',
      ),
    },
    about,
  ),
] as const
