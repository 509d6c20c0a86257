import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { percent, sessionId, visitorId } from '../../../projections/sessions/decision-shape.ts'
import { decision, flag, text } from './common.ts'

export const visitorSummary = z
  .strictObject({
    object: z.literal('visitor_fingerprint'),
    id: visitorId,
    lifecycle: z.strictObject({
      first_seen_at: timestamp,
      last_seen_at: timestamp,
      seen_count: z.int().min(0).describe('Distinct sessions.'),
      expires_at: z.literal('9999-12-31T00:00:00.000Z').describe('Always this: no expiry.'),
    }),
    latest_request: z.strictObject({ user_agent: z.string(), ip_address: z.string() }),
    storage: z.strictObject({
      cookies: z.boolean(),
      local_storage: z.boolean(),
      indexed_db: z.boolean(),
      service_worker: z.boolean(),
      window_name: z.boolean(),
    }),
    anchors: z.strictObject({ webgl_hash: text, parameters_hash: text, audio_hash: text }),
  })
  .meta({ id: 'VisitorFingerprintSummary' })

const activity = z.strictObject({
  session_id: sessionId,
  decision,
  request: z.strictObject({
    url: z.string(),
    user_agent: z.string(),
    ip_address: z.string(),
    screen_size: text,
    is_touch_capable: flag,
  }),
  score_breakdown: z.strictObject({ categories: z.record(z.string(), percent) }),
})

export const visitorDetail = visitorSummary
  .extend({
    components: z.strictObject({ vector: z.array(z.number()) }),
    activity: z.strictObject({ sessions: z.array(activity).max(100) }),
  })
  .meta({ id: 'VisitorFingerprintDetail' })

export type VisitorSummary = z.output<typeof visitorSummary>
export type VisitorDetail = z.output<typeof visitorDetail>
