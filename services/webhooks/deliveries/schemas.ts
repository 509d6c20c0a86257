import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { deliveryEnvelopeSchema, deliveryRequestSchema } from '../../../infra/wire/delivery-envelope.ts'
import { deliveryTypes } from '../../../infra/wire/webhooks/events.ts'
import {
  attribution,
  decisionEventId as decisionId,
  manipulation,
  percent,
  phase,
  sessionId,
  verdict,
  visitorId,
} from '../../../projections/sessions/decision-shape.ts'
import { endpointId, eventId } from '../events/ids.ts'

const text = z.string().nullable()

const requestSummary = z
  .strictObject({
    url: z.url().nullable(),
    user_agent: text,
    ip_address: text,
    screen_size: text,
    is_touch_capable: z.boolean().optional().describe('Absent when it is not known.'),
    platform: text.describe('Name of the operating system.'),
    first_seen: timestamp.describe('When the session began.'),
    risk_time: timestamp.describe('When it was decided about.'),
  })
  .meta({ id: 'WebhookRequestSummary' })

const session = z.strictObject({ id: sessionId })

/** `data` of session.fingerprint.calculated. */
export const fingerprintCalculated = z
  .strictObject({
    object: z.literal('session_fingerprint'),
    session,
    visitor_fingerprint: z.strictObject({
      id: visitorId,
      confidence: percent.nullable(),
      identified_at: timestamp,
    }),
    request: requestSummary,
    calculated_at: timestamp,
  })
  .meta({ id: 'SessionFingerprintCalculatedPayload' })

const persistedDecision = z
  .strictObject({
    id: decisionId,
    scoring_event_id: decisionId,
    phase,
    is_provisional: z.boolean(),
    persisted_at: timestamp,
  })
  .describe('The decision; `id` is what REST and sealed tokens call `event_id`.')

const signal = z.looseObject({
  id: z.string(),
  category: z.string(),
  confidence: z.string(),
  score: z.number(),
  role: z.string(),
})

/** `data` of session.result.persisted. */
export const resultPersisted = z
  .strictObject({
    object: z.literal('session_result'),
    session,
    event: persistedDecision,
    decision: z.strictObject({
      verdict,
      risk_score: percent,
      score: z.number().min(0).max(1).describe('A hundredth of risk_score.'),
      manipulation: manipulation.nullable(),
    }),
    visitor_fingerprint: z.strictObject({ id: visitorId }).nullable(),
    request: requestSummary,
    score_breakdown: z.looseObject({ categories: z.record(z.string(), percent) }),
    signals: z.array(signal),
    attribution: z.looseObject({
      bot: attribution.nullable().describe('Who the bot is; null unless the verdict is bot.'),
    }),
  })
  .meta({ id: 'SessionResultPersistedPayload' })

const idCharacters = '[0-9a-hjkmnp-tv-z]{26}'

/** `data` of gate.session.approved. */
export const gateApproved = z
  .strictObject({
    service_id: z
      .string()
      .min(3)
      .max(32)
      .regex(/^[a-z0-9](?:[a-z0-9_-]{1,30}[a-z0-9])$/)
      .describe('The service that somebody signs up for.'),
    gate_session_id: z
      .string()
      .regex(new RegExp(`^gate_${idCharacters}$`))
      .describe('Of the signup: make one account for it, however often you are asked.'),
    gate_account_id: z
      .string()
      .regex(new RegExp(`^gacct_${idCharacters}$`))
      .describe('Keep it with the account: agent tokens and dashboard logins name it.'),
    account_name: z.string().describe('1 to 100 characters, as the agent named the account.'),
    metadata: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('What the agent sent along; nobody has checked it.'),
    foil: z
      .strictObject({ verdict, score: z.number().min(0).max(1).nullable() })
      .describe('How the person who approved was scored; `score` is a hundredth of risk_score.'),
    delivery: deliveryRequestSchema.describe('The key to seal the credentials to.'),
  })
  .meta({ id: 'GateApprovedWebhookPayload' })

/** What an endpoint has to answer to gate.session.approved. */
export const gateApprovedResponse = z
  .looseObject({ encrypted_delivery: deliveryEnvelopeSchema })
  .meta({ id: 'GateApprovedWebhookResponse' })

/** `data` of webhook.test. */
export const testPayload = z
  .looseObject({ object: z.literal('webhook_test'), endpoint: z.strictObject({ id: endpointId }) })
  .meta({ id: 'WebhookTestEventPayload' })

/** `data` of any event. */
export const payload = z.union([fingerprintCalculated, resultPersisted, gateApproved, testPayload])

export type RequestSummary = z.output<typeof requestSummary>
export type FingerprintCalculated = z.output<typeof fingerprintCalculated>
export type ResultPersisted = z.output<typeof resultPersisted>
export type GateApproved = z.output<typeof gateApproved>
/** As it is sent: later versions may add members. */
export type TestPayload = Pick<z.output<typeof testPayload>, 'object' | 'endpoint'>

const envelope = z
  .strictObject({
    id: eventId.describe('The same in every attempt and for every endpoint.'),
    object: z.literal('webhook_event'),
    type: z.enum(deliveryTypes),
    created: timestamp.describe('When it happened, not when it was sent.'),
    data: payload,
  })
  .meta({ id: 'WebhookEventEnvelope' })

const ofType = <Type extends string, Data extends z.ZodType>(type: Type, data: Data) =>
  z.intersection(envelope, z.looseObject({ type: z.literal(type), data }))

export const fingerprintCalculatedEvent = ofType(
  'session.fingerprint.calculated',
  fingerprintCalculated,
).meta({ id: 'SessionFingerprintCalculatedWebhookEvent' })

export const resultPersistedEvent = ofType('session.result.persisted', resultPersisted).meta({
  id: 'SessionResultPersistedWebhookEvent',
})

export const gateApprovedEvent = ofType('gate.session.approved', gateApproved).meta({
  id: 'GateSessionApprovedWebhookEvent',
})

export const testEvent = ofType('webhook.test', testPayload).meta({ id: 'WebhookTestWebhookEvent' })
