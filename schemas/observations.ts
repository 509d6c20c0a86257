import {
  bool,
  count,
  countOrZero,
  counts,
  either,
  group,
  isObject,
  type LenientParser,
  listUpTo,
  number,
  optional,
  type ParsedBy,
  size,
  stringUpTo,
} from './lenient.ts'
import { nativeIntegritySchema, nativeMotionSchema } from './native-detail.ts'

// Observations that a client can send. Texts have no U+0000, which Postgres cannot store, and counts fit an Avro int;
// other values would stop every consumer of the event.
const text = { ...stringUpTo(512), docType: 'text' }
const longText = stringUpTo(2048)
const hash = { ...either(stringUpTo(128), number), docType: 'hash' }
const texts = listUpTo(stringUpTo(200), 100)

const navigator = group({
  user_agent: longText,
  app_version: longText,
  platform: text,
  vendor: text,
  product_sub: text,
  language: text,
  languages: texts,
  hardware_concurrency: count,
  device_memory: size,
  max_touch_points: count,
  pdf_viewer_enabled: bool,
  cookie_enabled: bool,
  mime_types_count: count,
  plugins: texts,
  plugins_genuine: bool,
  connection_rtt: size,
  brands: listUpTo(group({ brand: text, version: text }), 20),
  ua_data_platform: text,
  ua_data_platform_version: text,
  ua_data_architecture: text,
  ua_data_model: text,
  ua_data_mobile: bool,
  ua_full_version: text,
})

const environment = group({
  outer_width: size,
  outer_height: size,
  inner_width: size,
  inner_height: size,
  screen_width: size,
  screen_height: size,
  avail_width: size,
  avail_height: size,
  color_depth: count,
  pixel_ratio: size,
  orientation_type: text,
  has_focus: bool,
  secure_context: bool,
  timezone: text,
  timezone_offset_min: number,
  pointer_coarse: bool,
  pointing_device: bool,
  has_chrome_object: bool,
  notification_permission: text,
  permissions_query_state: text,
})

const automation = group({
  webdriver: bool,
  webdriver_iframe: bool,
  /** null if the worker could not be read. */
  webdriver_worker: bool,
  webdriver_own_property: bool,
  globals: texts,
  document_attributes: texts,
  cdp_runtime: bool,
  console_readers: texts,
  sequentum: bool,
  electron: bool,
})

const tamper = group({
  /** Number of examined functions. If 0, empty lists prove nothing. */
  examined: count,
  patched_functions: texts,
  foreign_primitives: texts,
  realm_differences: texts,
  realm_available: bool,
  navigator_own_properties: texts,
  iframe_srcdoc_proxy: bool,
  chrome_runtime_faked: bool,
  webgl_parameter_mismatch: bool,
  timezone_mismatch: bool,
  brave: bool,
  timer_precision_reduced: bool,
})

const engine = group({
  eval_length: count,
  null_property_message: text,
  name: text,
})

const realm = group({
  available: bool,
  user_agent: longText,
  platform: text,
  languages: texts,
  hardware_concurrency: count,
  webgl_renderer: text,
})

const storage = group({
  cookies: bool,
  local_storage: bool,
  session_storage: bool,
  indexed_db: bool,
  service_worker: bool,
  window_name: bool,
})

const capabilities = group({
  touch: bool,
  webgpu: bool,
  platform_authenticator: bool,
  conditional_mediation: bool,
  media_devices: bool,
  speech_synthesis: bool,
})

const canvas = group({
  hash,
  geometry_hash: hash,
  text_hash: hash,
  winding: bool,
  noise_detected: bool,
  offscreen_consistent: bool,
})

const webgl = group({
  vendor: text,
  renderer: text,
  version: text,
  shading_language_version: text,
  parameters_hash: hash,
  extensions_hash: hash,
  extension_parameters_hash: hash,
  shader_precision_hash: hash,
})

const webgpu = group({
  available: bool,
  adapter_vendor: text,
  adapter_architecture: text,
  fallback_adapter: bool,
  features_hash: hash,
  limits_hash: hash,
})

const audio = group({
  hash,
  sample_rate: size,
  channel_count: count,
  voice_count: count,
  local_voice_count: count,
  default_voice_lang: text,
  noise_detected: bool,
})

const fonts = group({
  detected_count: count,
  tested_count: count,
  detected: texts,
  enumeration_hash: hash,
  metrics_hash: hash,
  preferences_hash: hash,
  emoji_hash: hash,
})

const media = group({
  device_count: count,
  counts_by_kind: counts(20),
  blank_label_count: count,
  topology_hash: hash,
})

const engineAnswer: LenientParser<{ id: number; answer: string } | null> = {
  docType: '{ id, answer }',
  parse: (value) =>
    isObject(value) &&
    Number.isSafeInteger(value.id) &&
    typeof value.answer === 'string' &&
    value.answer.length <= 128
      ? { id: Number(value.id), answer: value.answer.replaceAll('\0', '') }
      : null,
}

const engineAnswers = listUpTo(engineAnswer, 32)

const proofs = group({
  challenge: text,
  timing_nonce: text,
  canvas_challenge_hash: hash,
  engine_answers: engineAnswers,
  answer_mac: stringUpTo(64),
})

const native = group({
  device_model: text,
  os_name: text,
  os_version: text,
  architecture: text,
  install_id: text,
  bundle_id: text,
  app_version: text,
  app_build: text,
  carrier_name: text,
  country_iso: text,
  install_time_epoch_ms: size,
  provisioning_team: text,
  mcc: text,
  mnc: text,
  phone_type: text,
  network_type: text,
  radio_access: listUpTo(text, 10),
  jailbreak_or_root: bool,
  hooks: bool,
  debugger: bool,
  simulator_or_emulator: bool,
  code_signing_invalid: bool,
  integrity: optional(nativeIntegritySchema),
  motion: optional(nativeMotionSchema),
})

// Enumerated, so that clients cannot send arbitrary text.
export const withheldGroups = ['worker', 'iframe', 'webgl', 'canvas', 'fonts', 'audio'] as const
export const withheldReasons = ['blocked', 'unsupported', 'late'] as const
export interface Withheld {
  group: (typeof withheldGroups)[number]
  reason: (typeof withheldReasons)[number]
}

const withheld: LenientParser<Withheld | null> = {
  docType: '{ group, reason }',
  parse(value) {
    if (!isObject(value)) return null
    const group = withheldGroups.find((name) => name === value.group)
    const reason = withheldReasons.find((name) => name === value.reason)
    return group && reason ? { group, reason } : null
  },
}

const collection = group({ mode: text, withheld: listUpTo(withheld, 20) })

export const snapshotSchema = group({
  collection,
  navigator,
  environment,
  automation,
  tamper,
  engine,
  worker: realm,
  iframe: realm,
  storage,
  capabilities,
  canvas,
  webgl,
  webgpu,
  audio,
  fonts,
  media,
  proofs,
  native: optional(native),
})

const channel = {
  events: countOrZero,
  untrusted: countOrZero,
  duration_ms: number,
  interval_mean: number,
  interval_std: number,
}

export const behaviorSchema = group({
  mouse: group({
    ...channel,
    moves: countOrZero,
    clicks: countOrZero,
    /** Trusted clicks by any means: pointer, finger, key, label or screen reader. */
    activations: countOrZero,
    /** Clicks with no pointer movement before them and no key that could have caused them. */
    clicks_without_move: countOrZero,
    clicks_exact_center: countOrZero,
    /** Moves whose screen position equals the client position although the window has an offset. */
    screen_equals_client: countOrZero,
    frameless: countOrZero,
    coalesced: countOrZero,
    single: countOrZero,
    off_clock: countOrZero,
    presses: countOrZero,
    instant_presses: countOrZero,
    pressureless: countOrZero,
    jumps: countOrZero,
    /** Path length divided by distance, 1 for a straight line; mean over movements. */
    straightness: number,
    speed_std: number,
  }),
  keyboard: group({
    ...channel,
    keys: countOrZero,
    hold_mean: number,
    hold_std: number,
    rollovers: countOrZero,
    corrections: countOrZero,
    shiftless: countOrZero,
    malformed: countOrZero,
    unkeyed: countOrZero,
    off_clock: countOrZero,
    abutting: countOrZero,
    hasty: countOrZero,
    letters: countOrZero,
  }),
  touch: group({
    ...channel,
    touches: countOrZero,
    radius_std: number,
    instant: countOrZero,
    plain: countOrZero,
    displaced: countOrZero,
  }),
  scroll: group({
    ...channel,
    wheel: countOrZero,
    distance: number,
    uneven_wheel: countOrZero,
    uncaused: countOrZero,
  }),
  form: group({
    ...channel,
    focuses: countOrZero,
    changes: countOrZero,
    submits: countOrZero,
    /** Fields whose value changed without a key, paste or autofill event. */
    silent_changes: countOrZero,
    inserted: countOrZero,
    autofills: countOrZero,
    uncaused_focuses: countOrZero,
    unfocused_inputs: countOrZero,
    time_to_submit_ms: number,
  }),
  clipboard: group({ ...channel, copies: countOrZero, pastes: countOrZero }),
})

const attestationTypes = ['app_attest', 'app_attest_assertion', 'play_integrity'] as const

/** Attestation of an app, as returned by the platform's API. */
export interface SentAttestation {
  type: (typeof attestationTypes)[number]
  /** App Attest: key id from `generateKey`. Play Integrity: the app's `install_id`. */
  key_id: string
  /** App Attest: attestation or assertion in base64. Play Integrity: token. */
  data: string
}

// Maximum characters. Apple's data has about 8,000, Google's fewer.
const attestationLimits = { key_id: 128, data: 16_384 }

const attestationSchema: LenientParser<SentAttestation | null> = {
  docType: '{ type, key_id, data }',
  parse(value) {
    if (!isObject(value)) return null
    const type = attestationTypes.find((name) => name === value.type)
    const key_id = stringUpTo(attestationLimits.key_id).parse(value.key_id)
    const data = stringUpTo(attestationLimits.data).parse(value.data)
    return type && key_id && data ? { type, key_id, data } : null
  },
}

export type Snapshot = ParsedBy<typeof snapshotSchema>
export type Behavior = ParsedBy<typeof behaviorSchema>

export interface Observations {
  version: 1
  /** Milliseconds since the document started, by the client's monotonic clock. */
  elapsed_ms: number | null
  snapshot?: Snapshot | undefined
  behavior?: Behavior | undefined
  /** Answers to the questions in the response to the document's first batch. */
  engine_answers?: Snapshot['proofs']['engine_answers'] | undefined
  /** Only in a hand-off: lowercase hex SHA-256 of the text to which the site binds its request. */
  binding?: string | undefined
  /** Only from apps, in any body. */
  attestation?: SentAttestation | undefined
}

const sha256Hex = /^[0-9a-f]{64}$/

/** Unlike other lenient parsers, throws if the version is not 1. */
export const observationsSchema: LenientParser<Observations> = {
  docType: {
    version: '1',
    elapsed_ms: number.docType,
    snapshot: snapshotSchema.docType,
    behavior: behaviorSchema.docType,
    engine_answers: engineAnswers.docType,
  },
  parse(value) {
    if (!isObject(value) || value.version !== 1) throw new Error('observations must have version 1')
    const { elapsed_ms, snapshot, behavior, engine_answers, binding } = value
    const attestation = attestationSchema.parse(value.attestation)
    return {
      version: 1,
      elapsed_ms: number.parse(elapsed_ms),
      ...(isObject(snapshot) ? { snapshot: snapshotSchema.parse(snapshot) } : {}),
      ...(isObject(behavior) ? { behavior: behaviorSchema.parse(behavior) } : {}),
      ...(Array.isArray(engine_answers) && { engine_answers: engineAnswers.parse(engine_answers) }),
      ...(typeof binding === 'string' && sha256Hex.test(binding) ? { binding } : {}),
      ...(attestation && { attestation }),
    }
  },
}

/** Snapshot as clients send it, with optional members. */
export type SentSnapshot = {
  [G in keyof Snapshot]?: Partial<NonNullable<Snapshot[G]>> | Extract<Snapshot[G], null>
}
export type SentObservations = Omit<Observations, 'snapshot'> & { snapshot?: SentSnapshot }
