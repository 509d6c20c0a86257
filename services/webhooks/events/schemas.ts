import { z } from 'zod'
import { pageQuery } from '../../../infra/http/pagination.ts'
import { organizationParams, pathId, timestamp } from '../../../infra/http/schemas.ts'
import {
  deliveryEnvelopeSchema,
  deliveryRequestSchema,
} from '../../../infra/wire/delivery-envelope.ts'
import { deliveryTypes } from '../../../infra/wire/webhooks/events.ts'
import {
  agent,
  attribution,
  decisionEventId as decisionId,
  manipulation,
  percent,
  phase,
  sessionId,
  verdict,
  visitorId,
} from '../../../projections/sessions/decision-schemas.ts'
import { iso } from '../../../projections/sessions/decision-shape.ts'
import type { DeliveryRow } from '../../../projections/webhooks/tables.ts'

export const endpointIdSchema = z.string().regex(/^we_[0-9a-f]{32}$/)
export const deliveryIdSchema = z.string().regex(/^wdlv_[0-9a-f]{32}$/)
export const eventIdSchema = z.string().regex(/^evt_[0-9a-hjkmnp-tv-z]{26}$/)

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

const fingerprintPayload = z
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

const resultPayload = z
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
      agent: agent.describe('Which bot or agent it says that it is, by this decision.'),
    }),
  })
  .meta({ id: 'SessionResultPersistedPayload' })

const idCharacters = '[0-9a-hjkmnp-tv-z]{26}'

const approvalPayload = z
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

const testPayload = z
  .looseObject({
    object: z.literal('webhook_test'),
    endpoint: z.strictObject({ id: endpointIdSchema }),
  })
  .meta({ id: 'WebhookTestEventPayload' })

const payload = z.union([fingerprintPayload, resultPayload, approvalPayload, testPayload])

export type RequestSummary = z.output<typeof requestSummary>
export type FingerprintCalculated = z.output<typeof fingerprintPayload>
export type ResultPersisted = z.output<typeof resultPayload>
/** As it is sent: later versions may add members. */
export type TestPayload = Pick<z.output<typeof testPayload>, 'object' | 'endpoint'>

const envelope = z
  .strictObject({
    id: eventIdSchema.describe('The same in every attempt and for every endpoint.'),
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
  fingerprintPayload,
).meta({
  id: 'SessionFingerprintCalculatedWebhookEvent',
})

export const resultPersistedEvent = ofType('session.result.persisted', resultPayload).meta({
  id: 'SessionResultPersistedWebhookEvent',
})

export const gateApprovedEvent = ofType('gate.session.approved', approvalPayload).meta({
  id: 'GateSessionApprovedWebhookEvent',
})

export const testEvent = ofType('webhook.test', testPayload).meta({ id: 'WebhookTestWebhookEvent' })

export const deliverySchema = z
  .strictObject({
    object: z.literal('webhook_delivery'),
    id: deliveryIdSchema,
    event_id: eventIdSchema,
    endpoint_id: endpointIdSchema,
    event_type: z.enum(deliveryTypes),
    status: z
      .enum(['pending', 'delivering', 'succeeded', 'failed', 'skipped'])
      .describe(
        'pending: an attempt is due at next_attempt_at; failed: the last attempt of the schedule failed; skipped: given up without a request, as when the endpoint is disabled.',
      ),
    attempts: z.int().min(0),
    next_attempt_at: timestamp.nullable(),
    response_status: z.int().nullable().describe('Of the last attempt; null where no answer came.'),
    response_body: z
      .string()
      .nullable()
      .describe('The first 4,096 bytes of what the last attempt was answered; null for approvals.'),
    error: z.string().nullable().describe('Why the last attempt did not succeed.'),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'WebhookDelivery' })

export type WebhookDelivery = z.output<typeof deliverySchema>

/** A delivery as the API returns it. */
export function deliveryJson(delivery: DeliveryRow, isInFlight = false) {
  const { id, event_id, endpoint_id, event_type, attempts, response_status, response_body, error } =
    delivery
  const next = delivery.next_attempt_at
  return {
    object: 'webhook_delivery',
    id,
    event_id,
    endpoint_id,
    event_type,
    status: isInFlight ? 'delivering' : delivery.status,
    attempts,
    next_attempt_at: next === null ? null : iso(next),
    response_status,
    response_body,
    error,
    created_at: iso(delivery.created_at),
    updated_at: iso(delivery.updated_at),
  }
}

export const eventSchema = z
  .strictObject({
    object: z.literal('event'),
    id: eventIdSchema,
    type: z.enum(deliveryTypes),
    subject: z
      .strictObject({ type: z.string(), id: z.string() })
      .meta({ id: 'EventSubject' })
      .describe('What it is about.'),
    data: payload.describe('`data` of what endpoints are sent.'),
    webhook_deliveries: z.array(deliverySchema).describe('One for each endpoint that is told.'),
    created_at: timestamp,
  })
  .meta({ id: 'Event' })

export type WebhookEvent = z.output<typeof eventSchema>

export const eventsQuery = z.object({
  limit: pageQuery.limit,
  type: z.enum(deliveryTypes).optional().describe('Only events of this type.'),
  endpoint_id: endpointIdSchema
    .optional()
    .describe('Only events with a delivery for this webhook endpoint.'),
})

export const eventParams = z.object({ ...organizationParams.shape, eventId: pathId('evt') })
