import type { EventMeta } from '../../infra/event-store/event.ts'
import type { NearRepeats } from '../../projections/repeats/near-repeats.ts'
import type {
  ClientTelemetry,
  Device,
  Network,
  Repeats,
  SessionAgent,
  SessionScored,
  VisitorLink,
} from '../../schemas/events.ts'

const userAgent =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36'

export const noAgent: SessionAgent = {
  status: 'none',
  provider: null,
  product: null,
  purpose: null,
  method: null,
  evidence: null,
}

const network: Network = {
  ip_address: '203.0.113.9',
  ip_version: 'ipv4',
  status: 'skipped',
  summary: null,
  location: null,
  routing: { asn: null, organization: null },
  anonymity: {
    vpn: false,
    proxy: false,
    tor: false,
    relay: false,
    hosting: false,
    residential_proxy: false,
    callback_proxy: false,
    provider: null,
  },
  reputation: { listed: false, categories: [], suspicious_network: false },
  evidence: { risk_signals: [], operator_tags: [], client_types: [], client_count: null },
  evaluated_at: null,
}

const device: Device = {
  form_factor: 'desktop',
  operating_system: { name: 'Linux', version: null },
  architecture: 'x86',
  screen: {
    size: '1440x900',
    color_depth: 24,
    pixel_ratio: 1,
    orientation_type: 'landscape-primary',
  },
  locale: { timezone: 'Europe/Berlin', primary_language: 'de-DE', languages: ['de-DE', 'en'] },
  capabilities: {
    touch: { available: false, max_touch_points: 0 },
    storage: {
      cookies: true,
      local_storage: true,
      indexed_db: true,
      service_worker: true,
      window_name: true,
    },
    webgpu: { available: false },
    platform_authenticator: { available: null, conditional_mediation: null },
    media_devices: { available: true },
    speech_synthesis: { available: true },
  },
}

const telemetry: ClientTelemetry = {
  navigator: {
    platform: 'Linux x86_64',
    vendor: 'Google Inc.',
    hardware_concurrency: 8,
    device_memory: 8,
    max_touch_points: 0,
    pdf_viewer_enabled: true,
    cookie_enabled: true,
    product_sub: '20030107',
    primary_language: 'de-DE',
    languages: ['de-DE', 'en'],
    mime_types_count: 2,
    plugins: ['PDF Viewer'],
  },
  storage: {
    cookies: true,
    local_storage: true,
    session_storage: true,
    indexed_db: true,
    service_worker: true,
    window_name: true,
  },
  canvas: {
    hash: 'c0ffee',
    geometry_hash: 1,
    text_hash: null,
    winding: true,
    noise_detected: false,
    offscreen_consistent: true,
  },
  graphics: {
    webgl: {
      vendor: 'Intel',
      renderer: 'Mesa Intel(R) UHD Graphics 620',
      version: 'WebGL 2.0',
      shading_language_version: 'GLSL ES 3.00',
      parameters_hash: 'a1',
      extensions_hash: 'a2',
      extension_parameters_hash: null,
      shader_precision_hash: 'a3',
    },
    webgpu: {
      available: false,
      adapter_vendor: null,
      adapter_architecture: null,
      fallback_adapter: null,
      features_hash: null,
      limits_hash: null,
    },
  },
  audio: {
    hash: '124.04347527516074',
    sample_rate: 48_000,
    channel_count: 2,
    voice_count: 3,
    local_voice_count: 3,
    default_voice_lang: 'de-DE',
    noise_detected: false,
  },
  fonts: {
    detected_count: 41,
    tested_count: 60,
    enumeration_hash: 'f1',
    metrics_hash: 'f2',
    preferences_hash: null,
    emoji_hash: 'f3',
  },
  media: {
    device_count: 2,
    counts_by_kind: { audioinput: 1 },
    blank_label_count: 2,
    topology_hash: 'm1',
  },
}

/** Returns a visitor link, as scoring writes it. */
export function visitorLink(overrides: Partial<VisitorLink> = {}): VisitorLink {
  return {
    id: 'vid_00000000000000000000000001',
    confidence: 93,
    identified_at: 1_760_000_000_500,
    method: 'continuity',
    basis: 'deterministic',
    continuity_id: 'c1',
    anchors: { webgl_hash: 'w1', parameters_hash: 'a1', audio_hash: null },
    vector: [0.25, 1, -3.5],
    storage: {
      cookies: true,
      local_storage: true,
      indexed_db: true,
      service_worker: false,
      window_name: true,
    },
    ...overrides,
  }
}

/** Returns a complete decision. Overrides replace top-level members. */
export function sessionScored(overrides: Partial<SessionScored> = {}): SessionScored {
  return {
    event_id: 'evt_00000000000000000000000001',
    session_id: 'sid_00000000000000000000000001',
    organization_id: 'org_00000000000000000000000001',
    environment: 'live',
    created_at: 1_760_000_000_000,
    evaluated_at: 1_760_000_001_000,
    observed_at: overrides.evaluated_at ?? 1_760_000_001_000,
    evaluation_duration_ms: 4,
    scoring_version: '1',
    verdict: 'human',
    risk_score: 7,
    phase: 'snapshot',
    is_provisional: true,
    manipulation: { score: 0, verdict: 'none' },
    score_breakdown: { environment: 4, behavioral: 3 },
    request: {
      url: 'https://example.com/signup',
      referrer: null,
      user_agent: userAgent,
      ip_address: '203.0.113.9',
      screen_size: '1440x900',
      is_touch_capable: false,
    },
    visitor: visitorLink(),
    highlights: [
      {
        key: 'browser_profile_consistent',
        effect: 'reduces_risk',
        importance: 'medium',
        summary: 'Browser identity and device capabilities agree.',
        evidence: [{ signal: 'ua_consistent', name: 'User agent agrees with the engine' }],
      },
    ],
    attribution: null,
    web_bot_auth: null,
    network,
    runtime_integrity: {
      tampering_detected: 'clean',
      developer_tools_detected: 'clean',
      emulation_suspected: 'clean',
      virtualization_suspected: 'clean',
      privacy_hardening_suspected: 'clean',
      identity_spoofing_suspected: 'clean',
      replay_suspected: 'clean',
      outdated_environment: 'clean',
      verified_bot_identity: 'clean',
    },
    connection_fingerprint: {
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
      user_agent_alignment: null,
    },
    browser: {
      name: 'Chrome',
      version: '141.0.0.0',
      major_version: '141',
      engine: 'blink',
      app_name: null,
    },
    device,
    analysis_coverage: {
      browser: true,
      device: true,
      network: false,
      runtime: true,
      behavioral: false,
      visitor_identity: true,
      attestation: false,
    },
    signals_fired: [
      {
        signal: 'ua_consistent',
        role: 'trust',
        category: 'environment',
        strength: 'weak',
        channel: 'user_agent',
        signal_score: 4,
      },
    ],
    client_telemetry: telemetry,
    native_runtime_integrity: null,
    native_app: null,
    native_carrier: null,
    native_motion_print: null,
    device_identity: null,
    install_id: null,
    hand_off: null,
    snapshot_hash: null,
    behavior_hash: null,
    repeats: null,
    agent: noAgent,
    attestation: null,
    given_answers: null,
    key_id: 'key_00000000000000000000000001',
    platform: 'web',
    sdk: { name: 'tidegate-web', version: '0.1.0' },
    has_snapshot: true,
    reason: 'first',
    model: 'tidegate-test',
    evidence: {
      sources: ['request_headers', 'snapshot'],
      unchecked: ['verified_bot_identity'],
      missing: [],
      withheld: [],
      impossible: [],
      claimed: [],
    },
    ...overrides,
  }
}

/** Returns the metadata of a decision. */
export function metaOf(
  data: Pick<SessionScored, 'event_id' | 'organization_id' | 'environment'>,
): EventMeta {
  return {
    eventId: data.event_id,
    time: 1_760_000_001_000,
    organizationId: data.organization_id,
    environment: data.environment,
  }
}

/** Returns repeats with the same count everywhere, except for overrides. */
export function repeatsOf(count: number, some: Partial<Repeats> = {}): Repeats {
  const counts = { five_minutes: count, hour: count, day: count }
  return {
    address_sessions: counts,
    network_sessions: counts,
    visitor_sessions: counts,
    snapshot_sessions: counts,
    behavior_sessions: counts,
    address_visitors: counts,
    visitor_addresses: counts,
    visitor_users: counts,
    user_visitors: counts,
    ...some,
  }
}

export const nearRepeats = (some: Partial<NearRepeats> = {}): NearRepeats => ({
  sessions: 1,
  on_machine: 1,
  at_address: 1,
  pace_visitors: 1,
  gap_seconds: null,
  gap_deviation: null,
  in_minute: 1,
  in_seconds: 1,
  copies: 0,
  ...some,
})
