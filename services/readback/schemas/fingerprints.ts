import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import {
  decisionEventId,
  manipulation,
  percent,
  phase,
  sessionId,
  verdict,
  visitorId,
} from '../../../projections/sessions/decision-schemas.ts'
import { identificationSchema } from './identification.ts'

export const nullableText = z.string().nullable()
export const nullableFlag = z.boolean().nullable()
export const nullableCount = z.int().min(0).nullable()

export const decision = z
  .strictObject({
    event_id: decisionEventId,
    verdict,
    risk_score: percent.describe('0-39: human, 40-69: inconclusive, 70-100: bot.'),
    phase,
    is_provisional: z.boolean(),
    manipulation: manipulation.nullable(),
    evaluation_duration_ms: z.int().min(0),
    evaluated_at: timestamp,
  })
  .meta({ id: 'Decision' })

export const resolution = z
  .strictObject({
    method: z
      .enum([
        'continuity',
        'fingerprint',
        'fingerprint_evolution',
        'new',
        'native_persistent',
        'native_new',
        'existing',
        'unknown',
      ])
      .nullable(),
    basis: z.enum(['deterministic', 'probabilistic']).nullable(),
  })
  .describe('Method and basis of the match to the visitor.')

export const visitorLink = z
  .strictObject({
    object: z.literal('visitor_fingerprint'),
    id: visitorId,
    confidence: percent.nullable(),
    identified_at: timestamp.nullable(),
    resolution: resolution
      .optional()
      .describe('Method and basis of the match to the visitor. Only with `include=resolution`.'),
  })
  .meta({ id: 'VisitorFingerprintLink' })

export const visitorSummarySchema = z
  .strictObject({
    object: z.literal('visitor_fingerprint'),
    id: visitorId,
    lifecycle: z.strictObject({
      first_seen_at: timestamp,
      last_seen_at: timestamp,
      seen_count: z.int().min(0).describe('Number of distinct sessions.'),
      expires_at: z
        .literal('9999-12-31T00:00:00.000Z')
        .describe('Always this value: visitors have no fixed expiry.'),
    }),
    latest_request: z.strictObject({ user_agent: z.string(), ip_address: z.string() }),
    storage: z.strictObject({
      cookies: z.boolean(),
      local_storage: z.boolean(),
      indexed_db: z.boolean(),
      service_worker: z.boolean(),
      window_name: z.boolean(),
    }),
    anchors: z.strictObject({
      webgl_hash: nullableText,
      parameters_hash: nullableText,
      audio_hash: nullableText,
    }),
    latest_session: z
      .strictObject({
        id: sessionId,
        verdict,
        risk_score: percent,
        client_user_id: nullableText,
        country: nullableText,
        browser: nullableText,
        os: nullableText,
      })
      .nullable()
      .optional()
      .describe(
        'Newest session of the visitor; null once retention deleted it. Only with `include=latest_session`.',
      ),
  })
  .meta({ id: 'VisitorFingerprintSummary' })

const activity = z.strictObject({
  session_id: sessionId,
  decision,
  request: z.strictObject({
    url: z.string(),
    user_agent: z.string(),
    ip_address: z.string(),
    screen_size: nullableText,
    is_touch_capable: nullableFlag,
  }),
  score_breakdown: z.strictObject({ categories: z.record(z.string(), percent) }),
})

export const visitorDetailSchema = visitorSummarySchema
  .omit({ latest_session: true })
  .extend({
    components: z.strictObject({ vector: z.array(z.number()) }),
    identification: identificationSchema
      .nullable()
      .optional()
      .describe(
        'Explanation of the match of the newest session. Only with `include=identification`.',
      ),
    activity: z.strictObject({ sessions: z.array(activity).max(100) }),
  })
  .meta({ id: 'VisitorFingerprintDetail' })

export type VisitorSummary = z.output<typeof visitorSummarySchema>
export type VisitorDetail = z.output<typeof visitorDetailSchema>
