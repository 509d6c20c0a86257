import { z } from 'zod'
import { count, flag, text } from './common.ts'

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
