import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import {
  eventId,
  manipulation,
  percent,
  phase,
  verdict,
  visitorId,
} from '../../../projections/sessions/decision-shape.ts'

export const text = z.string().nullable()
export const flag = z.boolean().nullable()
export const count = z.int().min(0).nullable()

export const decision = z
  .strictObject({
    event_id: eventId,
    verdict,
    risk_score: percent.describe('human 0-39, inconclusive 40-69, bot 70-100.'),
    phase,
    is_provisional: z.boolean(),
    manipulation: manipulation.nullable(),
    evaluation_duration_ms: z.int().min(0),
    evaluated_at: timestamp,
  })
  .meta({ id: 'Decision' })

export const visitorLink = z
  .strictObject({
    object: z.literal('visitor_fingerprint'),
    id: visitorId,
    confidence: percent.nullable(),
    identified_at: timestamp.nullable(),
  })
  .meta({ id: 'VisitorFingerprintLink' })
