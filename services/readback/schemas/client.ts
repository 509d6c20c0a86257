import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { count, flag, text } from './summaries.ts'

export const browser = z
  .strictObject({
    name: text,
    version: text,
    major_version: text,
    engine: z.string(),
    app_name: text.describe('The app around an embedded web view; null for ordinary browsers.'),
  })
  .meta({ id: 'SessionBrowser' })

const capabilities = z.strictObject({
  touch: z.strictObject({ available: flag, max_touch_points: z.int().nullable() }),
  storage: z.strictObject({
    cookies: flag,
    local_storage: flag,
    indexed_db: flag,
    service_worker: flag,
    window_name: flag,
  }),
  webgpu: z.strictObject({ available: flag }),
  platform_authenticator: z.strictObject({ available: flag, conditional_mediation: flag }),
  media_devices: z.strictObject({ available: flag }),
  speech_synthesis: z.strictObject({ available: flag }),
})

export const device = z
  .strictObject({
    form_factor: z.string(),
    operating_system: z.strictObject({ name: text, version: text }),
    architecture: text,
    screen: z.strictObject({
      size: text,
      color_depth: z.int().nullable(),
      pixel_ratio: z.number().nullable(),
      orientation_type: text,
    }),
    locale: z.strictObject({ timezone: text, primary_language: text, languages: z.array(z.string()) }),
    capabilities,
  })
  .meta({ id: 'SessionDevice' })

const hash = z.union([z.string(), z.number(), z.null()])
const amount = z.number().min(0).nullable()

const navigator = z.strictObject({
  platform: text,
  vendor: text,
  hardware_concurrency: count,
  device_memory: amount,
  max_touch_points: count,
  pdf_viewer_enabled: flag,
  cookie_enabled: flag,
  product_sub: text,
  primary_language: text,
  languages: z.array(z.string()),
  mime_types_count: count,
  plugins: z.array(z.string()),
})

const storage = z.strictObject({
  cookies: flag,
  local_storage: flag,
  session_storage: flag,
  indexed_db: flag,
  service_worker: flag,
  window_name: flag,
})

const canvas = z.strictObject({
  hash,
  geometry_hash: hash,
  text_hash: hash,
  winding: flag,
  noise_detected: flag,
  offscreen_consistent: flag,
})

const graphics = z.strictObject({
  webgl: z.strictObject({
    vendor: text,
    renderer: text,
    version: text,
    shading_language_version: text,
    parameters_hash: hash,
    extensions_hash: hash,
    extension_parameters_hash: hash,
    shader_precision_hash: hash,
  }),
  webgpu: z.strictObject({
    available: flag,
    adapter_vendor: text,
    adapter_architecture: text,
    fallback_adapter: flag,
    features_hash: hash,
    limits_hash: hash,
  }),
})

const audio = z.strictObject({
  hash,
  sample_rate: amount,
  channel_count: count,
  voice_count: count,
  local_voice_count: count,
  default_voice_lang: text,
  noise_detected: flag,
})

const fonts = z.strictObject({
  detected_count: count,
  tested_count: count,
  enumeration_hash: hash,
  metrics_hash: hash,
  preferences_hash: hash,
  emoji_hash: hash,
})

const media = z.strictObject({
  device_count: count,
  counts_by_kind: z.record(z.string(), z.int().min(0)),
  blank_label_count: count,
  topology_hash: hash,
})

/** Curated, not raw. */
export const clientTelemetry = z
  .strictObject({ navigator, storage, canvas, graphics, audio, fonts, media })
  .meta({ id: 'SessionClientTelemetry' })

const coordinate = z.number().nullable()

const location = z.strictObject({
  city: text,
  region: text,
  country: text,
  country_code: text,
  latitude: coordinate,
  longitude: coordinate,
  timezone: text,
  postal_code: text,
  accuracy_radius_km: z.number().min(0).nullable(),
})

export const network = z
  .strictObject({
    ip_address: text,
    ip_version: z.enum(['ipv4', 'ipv6']).nullable(),
    status: z.enum(['pending', 'ready', 'skipped', 'error']),
    summary: text,
    location: location.nullable(),
    routing: z.strictObject({ asn: text, organization: text }),
    anonymity: z.strictObject({
      vpn: z.boolean(),
      proxy: z.boolean(),
      tor: z.boolean(),
      relay: z.boolean(),
      hosting: z.boolean(),
      residential_proxy: z.boolean(),
      callback_proxy: z.boolean(),
      provider: text,
    }),
    reputation: z.strictObject({
      listed: z.boolean(),
      categories: z.array(z.string()),
      suspicious_network: z.boolean(),
    }),
    evidence: z.strictObject({
      risk_signals: z.array(z.string()),
      operator_tags: z.array(z.string()),
      client_types: z.array(z.string()),
      client_count: count,
    }),
    evaluated_at: timestamp.nullable(),
  })
  .meta({ id: 'SessionNetwork' })

const range = z.strictObject({ min: z.int(), max: z.int() })

const reference = z.strictObject({
  label: z.string(),
  source: z.string(),
  protocol: z.string(),
  tls_version: z.string(),
  sni: z.string(),
  alpn: z.string(),
  cipher_count: range,
  ext_count: range,
  sample_size: z.int(),
  verified: flag,
})

export const connectionFingerprint = z
  .strictObject({
    ja4: z.strictObject({
      hash: text,
      profile: text,
      family: text,
      product: text,
      confidence: text,
      match_source: text,
      deterministic: flag,
      reference: reference.nullable(),
    }),
    http2: z.strictObject({ akamai_fingerprint: text, profile: text }),
    user_agent_alignment: z.enum(['match', 'mismatch', 'unknown']).nullable(),
  })
  .meta({ id: 'SessionConnectionFingerprint' })
