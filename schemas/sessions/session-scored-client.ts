import {
  amount,
  boolean,
  count,
  flag,
  hash,
  int,
  mapOf,
  oneOf,
  orNull,
  record,
  string,
  strings,
  text,
  time,
} from '../avro.ts'

const ipVersion = oneOf('IpVersion', ['ipv4', 'ipv6'], 'ipv4')

const networkStatus = oneOf('NetworkStatus', ['pending', 'ready', 'skipped', 'error'], 'skipped')

const networkLocation = record('NetworkLocation', {
  city: text,
  region: text,
  country: text,
  country_code: text,
  latitude: amount,
  longitude: amount,
  timezone: text,
  postal_code: text,
  accuracy_radius_km: amount,
})

const networkAnonymity = record('NetworkAnonymity', {
  vpn: boolean,
  proxy: boolean,
  tor: boolean,
  relay: boolean,
  hosting: boolean,
  residential_proxy: boolean,
  callback_proxy: boolean,
  provider: text,
})

const networkEvidence = record('NetworkEvidence', {
  risk_signals: strings,
  operator_tags: strings,
  client_types: strings,
  client_count: count,
})

export const network = record('Network', {
  ip_address: text,
  ip_version: orNull(ipVersion),
  status: networkStatus,
  summary: text,
  location: orNull(networkLocation),
  routing: record('NetworkRouting', { asn: text, organization: text }),
  anonymity: networkAnonymity,
  reputation: record('NetworkReputation', {
    listed: boolean,
    categories: strings,
    suspicious_network: boolean,
  }),
  evidence: networkEvidence,
  evaluated_at: orNull(time),
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
  verified: flag,
})

const connectionFingerprintJa4 = record('ConnectionFingerprintJa4', {
  hash: text,
  profile: text,
  family: text,
  product: text,
  confidence: text,
  match_source: text,
  deterministic: flag,
  reference: orNull(connectionFingerprintJa4Reference),
})

const userAgentAlignment = oneOf('UserAgentAlignment', ['match', 'mismatch', 'unknown'], 'unknown')

export const connectionFingerprint = record('ConnectionFingerprint', {
  ja4: connectionFingerprintJa4,
  http2: record('ConnectionFingerprintHttp2', { akamai_fingerprint: text, profile: text }),
  user_agent_alignment: orNull(userAgentAlignment),
})

export const browser = record('Browser', {
  name: text,
  version: text,
  major_version: text,
  engine: string,
  app_name: text,
})

const deviceScreen = record('DeviceScreen', {
  size: text,
  color_depth: count,
  pixel_ratio: amount,
  orientation_type: text,
})

const deviceCapabilitiesStorage = record('DeviceCapabilitiesStorage', {
  cookies: flag,
  local_storage: flag,
  indexed_db: flag,
  service_worker: flag,
  window_name: flag,
})

const deviceCapabilities = record('DeviceCapabilities', {
  touch: record('DeviceCapabilitiesTouch', { available: flag, max_touch_points: count }),
  storage: deviceCapabilitiesStorage,
  webgpu: record('DeviceCapabilitiesWebgpu', { available: flag }),
  platform_authenticator: record('DeviceCapabilitiesPlatformAuthenticator', {
    available: flag,
    conditional_mediation: flag,
  }),
  media_devices: record('DeviceCapabilitiesMediaDevices', { available: flag }),
  speech_synthesis: record('DeviceCapabilitiesSpeechSynthesis', { available: flag }),
})

export const device = record('Device', {
  form_factor: string,
  operating_system: record('DeviceOperatingSystem', { name: text, version: text }),
  architecture: text,
  screen: deviceScreen,
  locale: record('DeviceLocale', { timezone: text, primary_language: text, languages: strings }),
  capabilities: deviceCapabilities,
})

const telemetryNavigator = record('TelemetryNavigator', {
  platform: text,
  vendor: text,
  hardware_concurrency: count,
  device_memory: amount,
  max_touch_points: count,
  pdf_viewer_enabled: flag,
  cookie_enabled: flag,
  product_sub: text,
  primary_language: text,
  languages: strings,
  mime_types_count: count,
  plugins: strings,
})

const telemetryStorage = record('TelemetryStorage', {
  cookies: flag,
  local_storage: flag,
  session_storage: flag,
  indexed_db: flag,
  service_worker: flag,
  window_name: flag,
})

const telemetryCanvas = record('TelemetryCanvas', {
  hash,
  geometry_hash: hash,
  text_hash: hash,
  winding: flag,
  noise_detected: flag,
  offscreen_consistent: flag,
})

const telemetryGraphicsWebgl = record('TelemetryGraphicsWebgl', {
  vendor: text,
  renderer: text,
  version: text,
  shading_language_version: text,
  parameters_hash: hash,
  extensions_hash: hash,
  extension_parameters_hash: hash,
  shader_precision_hash: hash,
})

const telemetryGraphicsWebgpu = record('TelemetryGraphicsWebgpu', {
  available: flag,
  adapter_vendor: text,
  adapter_architecture: text,
  fallback_adapter: flag,
  features_hash: hash,
  limits_hash: hash,
})

const telemetryAudio = record('TelemetryAudio', {
  hash,
  sample_rate: amount,
  channel_count: count,
  voice_count: count,
  local_voice_count: count,
  default_voice_lang: text,
  noise_detected: flag,
})

const telemetryFonts = record('TelemetryFonts', {
  detected_count: count,
  tested_count: count,
  enumeration_hash: hash,
  metrics_hash: hash,
  preferences_hash: hash,
  emoji_hash: hash,
})

const telemetryMedia = record('TelemetryMedia', {
  device_count: count,
  counts_by_kind: mapOf(int),
  blank_label_count: count,
  topology_hash: hash,
})

export const clientTelemetry = record('ClientTelemetry', {
  navigator: telemetryNavigator,
  storage: telemetryStorage,
  canvas: telemetryCanvas,
  graphics: record('TelemetryGraphics', { webgl: telemetryGraphicsWebgl, webgpu: telemetryGraphicsWebgpu }),
  audio: telemetryAudio,
  fonts: telemetryFonts,
  media: telemetryMedia,
})
