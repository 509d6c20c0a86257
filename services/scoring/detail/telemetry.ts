import type { ClientTelemetry } from '../../../schemas/events.ts'
import { type Snapshot, snapshotSchema } from '../../../schemas/observations.ts'

/** A snapshot in which nothing was observed. */
const nothing: Snapshot = snapshotSchema.parse({})

/** The curated part of a snapshot that a session's detail shows; all null without one. */
export function telemetryOf(snapshot: Snapshot | null): ClientTelemetry {
  const s = snapshot ?? nothing
  return {
    navigator: navigatorOf(s),
    storage: s.storage,
    canvas: s.canvas,
    graphics: { webgl: s.webgl, webgpu: s.webgpu },
    audio: s.audio,
    fonts: fontsOf(s),
    media: s.media,
  }
}

function navigatorOf({ navigator: n }: Snapshot): ClientTelemetry['navigator'] {
  return {
    platform: n.platform,
    vendor: n.vendor,
    hardware_concurrency: n.hardware_concurrency,
    device_memory: n.device_memory,
    max_touch_points: n.max_touch_points,
    pdf_viewer_enabled: n.pdf_viewer_enabled,
    cookie_enabled: n.cookie_enabled,
    product_sub: n.product_sub,
    primary_language: n.language,
    languages: n.languages,
    mime_types_count: n.mime_types_count,
    plugins: n.plugins,
  }
}

function fontsOf({ fonts: f }: Snapshot): ClientTelemetry['fonts'] {
  return {
    detected_count: f.detected_count,
    tested_count: f.tested_count,
    enumeration_hash: f.enumeration_hash,
    metrics_hash: f.metrics_hash,
    preferences_hash: f.preferences_hash,
    emoji_hash: f.emoji_hash,
  }
}
