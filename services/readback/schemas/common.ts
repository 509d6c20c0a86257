import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'

const idCharacters = '[0-9a-hjkmnp-tv-z]{26}'

export const sessionId = z.string().regex(new RegExp(`^sid_${idCharacters}$`))
export const eventId = z.string().regex(new RegExp(`^evt_${idCharacters}$`))
export const visitorId = z.string().regex(new RegExp(`^vid_${idCharacters}$`))

export const verdict = z.enum(['bot', 'human', 'inconclusive']).meta({ id: 'Verdict' })
export const phase = z.enum(['snapshot', 'behavioral']).meta({ id: 'Phase' })
export const percent = z.int().min(0).max(100)
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
    manipulation: z
      .strictObject({ score: percent, verdict: z.enum(['none', 'low', 'medium', 'high']) })
      .nullable(),
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
