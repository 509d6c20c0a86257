import {
  amountOrNull,
  boolean,
  countOrNull,
  flagOrNull,
  hash,
  int,
  mapOf,
  oneOf,
  orNull,
  record,
  string,
  strings,
  textOrNull,
  timestampMillis,
} from '../avro.ts'

const ipVersion = oneOf('IpVersion', ['ipv4', 'ipv6'], 'ipv4')

const networkStatus = oneOf('NetworkStatus', ['pending', 'ready', 'skipped', 'error'], 'skipped')

const networkLocation = record('NetworkLocation', {
  city: textOrNull,
  region: textOrNull,
  country: textOrNull,
  country_code: textOrNull,
  latitude: amountOrNull,
  longitude: amountOrNull,
  timezone: textOrNull,
  postal_code: textOrNull,
  accuracy_radius_km: amountOrNull,
})

const networkAnonymity = record('NetworkAnonymity', {
  vpn: boolean,
  proxy: boolean,
  tor: boolean,
  relay: boolean,
  hosting: boolean,
  residential_proxy: boolean,
  callback_proxy: boolean,
  provider: textOrNull,
})

const networkEvidence = record('NetworkEvidence', {
  risk_signals: strings,
  operator_tags: strings,
  client_types: strings,
  client_count: countOrNull,
})

export const networkRecord = record('Network', {
  ip_address: textOrNull,
  ip_version: orNull(ipVersion),
  status: networkStatus,
  summary: textOrNull,
  location: orNull(networkLocation),
  routing: record('NetworkRouting', { asn: textOrNull, organization: textOrNull }),
  anonymity: networkAnonymity,
  reputation: record('NetworkReputation', {
    listed: boolean,
    categories: strings,
    suspicious_network: boolean,
  }),
  evidence: networkEvidence,
  evaluated_at: orNull(timestampMillis),
})

const connectionFingerprintJa4Reference = record('ConnectionFingerprintJa4Reference', {
  label: string,
  source: string,
  protocol: string,
  tls_version: string,
  sni: string,
  alpn: string,
  cipher_count: record('ConnectionFingerprintJa4ReferenceCipherCount', { min: int, max: int }),
  ext_count: record('ConnectionFingerprintJa4ReferenceExtCount', { min: int, max: int }),
  sample_size: int,
  verified: flagOrNull,
})

const connectionFingerprintJa4 = record('ConnectionFingerprintJa4', {
  hash: textOrNull,
  profile: textOrNull,
  family: textOrNull,
  product: textOrNull,
  confidence: textOrNull,
  match_source: textOrNull,
  deterministic: flagOrNull,
  reference: orNull(connectionFingerprintJa4Reference),
})

const userAgentAlignment = oneOf('UserAgentAlignment', ['match', 'mismatch', 'unknown'], 'unknown')

export const connectionFingerprintRecord = record('ConnectionFingerprint', {
  ja4: connectionFingerprintJa4,
  http2: record('ConnectionFingerprintHttp2', { akamai_fingerprint: textOrNull, profile: textOrNull }),
  user_agent_alignment: orNull(userAgentAlignment),
})

export const browserRecord = record('Browser', {
  name: textOrNull,
  version: textOrNull,
  major_version: textOrNull,
  engine: string,
  app_name: textOrNull,
})

const deviceScreen = record('DeviceScreen', {
  size: textOrNull,
  color_depth: countOrNull,
  pixel_ratio: amountOrNull,
  orientation_type: textOrNull,
})

const deviceCapabilitiesStorage = record('DeviceCapabilitiesStorage', {
  cookies: flagOrNull,
  local_storage: flagOrNull,
  indexed_db: flagOrNull,
  service_worker: flagOrNull,
  window_name: flagOrNull,
})

const deviceCapabilities = record('DeviceCapabilities', {
  touch: record('DeviceCapabilitiesTouch', { available: flagOrNull, max_touch_points: countOrNull }),
  storage: deviceCapabilitiesStorage,
  webgpu: record('DeviceCapabilitiesWebgpu', { available: flagOrNull }),
  platform_authenticator: record('DeviceCapabilitiesPlatformAuthenticator', {
    available: flagOrNull,
    conditional_mediation: flagOrNull,
  }),
  media_devices: record('DeviceCapabilitiesMediaDevices', { available: flagOrNull }),
  speech_synthesis: record('DeviceCapabilitiesSpeechSynthesis', { available: flagOrNull }),
})

export const deviceRecord = record('Device', {
  form_factor: string,
  operating_system: record('DeviceOperatingSystem', { name: textOrNull, version: textOrNull }),
  architecture: textOrNull,
  screen: deviceScreen,
  locale: record('DeviceLocale', { timezone: textOrNull, primary_language: textOrNull, languages: strings }),
  capabilities: deviceCapabilities,
})

const telemetryNavigator = record('TelemetryNavigator', {
  platform: textOrNull,
  vendor: textOrNull,
  hardware_concurrency: countOrNull,
  device_memory: amountOrNull,
  max_touch_points: countOrNull,
  pdf_viewer_enabled: flagOrNull,
  cookie_enabled: flagOrNull,
  product_sub: textOrNull,
  primary_language: textOrNull,
  languages: strings,
  mime_types_count: countOrNull,
  plugins: strings,
})

const telemetryStorage = record('TelemetryStorage', {
  cookies: flagOrNull,
  local_storage: flagOrNull,
  session_storage: flagOrNull,
  indexed_db: flagOrNull,
  service_worker: flagOrNull,
  window_name: flagOrNull,
})

const telemetryCanvas = record('TelemetryCanvas', {
  hash,
  geometry_hash: hash,
  text_hash: hash,
  winding: flagOrNull,
  noise_detected: flagOrNull,
  offscreen_consistent: flagOrNull,
})

const telemetryGraphicsWebgl = record('TelemetryGraphicsWebgl', {
  vendor: textOrNull,
  renderer: textOrNull,
  version: textOrNull,
  shading_language_version: textOrNull,
  parameters_hash: hash,
  extensions_hash: hash,
  extension_parameters_hash: hash,
  shader_precision_hash: hash,
})

const telemetryGraphicsWebgpu = record('TelemetryGraphicsWebgpu', {
  available: flagOrNull,
  adapter_vendor: textOrNull,
  adapter_architecture: textOrNull,
  fallback_adapter: flagOrNull,
  features_hash: hash,
  limits_hash: hash,
})

const telemetryAudio = record('TelemetryAudio', {
  hash,
  sample_rate: amountOrNull,
  channel_count: countOrNull,
  voice_count: countOrNull,
  local_voice_count: countOrNull,
  default_voice_lang: textOrNull,
  noise_detected: flagOrNull,
})

const telemetryFonts = record('TelemetryFonts', {
  detected_count: countOrNull,
  tested_count: countOrNull,
  enumeration_hash: hash,
  metrics_hash: hash,
  preferences_hash: hash,
  emoji_hash: hash,
})

const telemetryMedia = record('TelemetryMedia', {
  device_count: countOrNull,
  counts_by_kind: mapOf(int),
  blank_label_count: countOrNull,
  topology_hash: hash,
})

export const clientTelemetryRecord = record('ClientTelemetry', {
  navigator: telemetryNavigator,
  storage: telemetryStorage,
  canvas: telemetryCanvas,
  graphics: record('TelemetryGraphics', { webgl: telemetryGraphicsWebgl, webgpu: telemetryGraphicsWebgpu }),
  audio: telemetryAudio,
  fonts: telemetryFonts,
  media: telemetryMedia,
})
