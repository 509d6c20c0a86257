import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { sessionId } from '../../../projections/sessions/decision-shape.ts'
import { decision, visitorLink } from './common.ts'

export const clientUserId = z.string().nullable().meta({
  maxLength: 256,
  description: "The customer's own id of the end user; set with PATCH /v1/sessions/{sessionId}.",
})

export const sessionSummary = z
  .strictObject({
    object: z.literal('session'),
    id: sessionId,
    created_at: timestamp,
    client_user_id: clientUserId,
    latest_decision: decision,
    visitor_fingerprint: visitorLink.nullable(),
  })
  .meta({ id: 'SessionSummary' })

export type SessionSummary = z.output<typeof sessionSummary>
