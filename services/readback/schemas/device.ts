import { z } from 'zod'
import { flag, text } from './common.ts'

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
