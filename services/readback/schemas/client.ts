import { z } from 'zod'
import { nullableCount, nullableFlag, nullableText } from './fingerprints.ts'

const nullableHash = z.union([z.string(), z.number(), z.null()])
const nullableAmount = z.number().min(0).nullable()

const navigator = z.strictObject({
  platform: nullableText,
  vendor: nullableText,
  hardware_concurrency: nullableCount,
  device_memory: nullableAmount,
  max_touch_points: nullableCount,
  pdf_viewer_enabled: nullableFlag,
  cookie_enabled: nullableFlag,
  product_sub: nullableText,
  primary_language: nullableText,
  languages: z.array(z.string()),
  mime_types_count: nullableCount,
  plugins: z.array(z.string()),
})

const storage = z.strictObject({
  cookies: nullableFlag,
  local_storage: nullableFlag,
  session_storage: nullableFlag,
  indexed_db: nullableFlag,
  service_worker: nullableFlag,
  window_name: nullableFlag,
})

const canvas = z.strictObject({
  hash: nullableHash,
  geometry_hash: nullableHash,
  text_hash: nullableHash,
  winding: nullableFlag,
  noise_detected: nullableFlag,
  offscreen_consistent: nullableFlag,
})

const graphics = z.strictObject({
  webgl: z.strictObject({
    vendor: nullableText,
    renderer: nullableText,
    version: nullableText,
    shading_language_version: nullableText,
    parameters_hash: nullableHash,
    extensions_hash: nullableHash,
    extension_parameters_hash: nullableHash,
    shader_precision_hash: nullableHash,
  }),
  webgpu: z.strictObject({
    available: nullableFlag,
    adapter_vendor: nullableText,
    adapter_architecture: nullableText,
    fallback_adapter: nullableFlag,
    features_hash: nullableHash,
    limits_hash: nullableHash,
  }),
})

const audio = z.strictObject({
  hash: nullableHash,
  sample_rate: nullableAmount,
  channel_count: nullableCount,
  voice_count: nullableCount,
  local_voice_count: nullableCount,
  default_voice_lang: nullableText,
  noise_detected: nullableFlag,
})

const fonts = z.strictObject({
  detected_count: nullableCount,
  tested_count: nullableCount,
  enumeration_hash: nullableHash,
  metrics_hash: nullableHash,
  preferences_hash: nullableHash,
  emoji_hash: nullableHash,
})

const media = z.strictObject({
  device_count: nullableCount,
  counts_by_kind: z.record(z.string(), z.int().min(0)),
  blank_label_count: nullableCount,
  topology_hash: nullableHash,
})

/** Selected observations of the client. */
export const clientTelemetry = z
  .strictObject({ navigator, storage, canvas, graphics, audio, fonts, media })
  .meta({ id: 'SessionClientTelemetry' })

export const browser = z
  .strictObject({
    name: nullableText,
    version: nullableText,
    major_version: nullableText,
    engine: z.string(),
    app_name: nullableText.describe('App that embeds the web view; null for ordinary browsers.'),
  })
  .meta({ id: 'SessionBrowser' })

const capabilities = z.strictObject({
  touch: z.strictObject({ available: nullableFlag, max_touch_points: z.int().nullable() }),
  storage: z.strictObject({
    cookies: nullableFlag,
    local_storage: nullableFlag,
    indexed_db: nullableFlag,
    service_worker: nullableFlag,
    window_name: nullableFlag,
  }),
  webgpu: z.strictObject({ available: nullableFlag }),
  platform_authenticator: z.strictObject({
    available: nullableFlag,
    conditional_mediation: nullableFlag,
  }),
  media_devices: z.strictObject({ available: nullableFlag }),
  speech_synthesis: z.strictObject({ available: nullableFlag }),
})

export const device = z
  .strictObject({
    form_factor: z.string(),
    operating_system: z.strictObject({ name: nullableText, version: nullableText }),
    architecture: nullableText,
    screen: z.strictObject({
      size: nullableText,
      color_depth: z.int().nullable(),
      pixel_ratio: z.number().nullable(),
      orientation_type: nullableText,
    }),
    locale: z.strictObject({
      timezone: nullableText,
      primary_language: nullableText,
      languages: z.array(z.string()),
    }),
    capabilities,
  })
  .meta({ id: 'SessionDevice' })
