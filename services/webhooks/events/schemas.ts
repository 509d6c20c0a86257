import { z } from 'zod'
import { pageQuery } from '../../../infra/http/pagination.ts'
import { organizationParams, pathId, timestamp } from '../../../infra/http/schemas.ts'
import { iso, isoOrNull } from '../../../infra/iso.ts'
import {
  deliveryEnvelopeSchema,
  deliveryRequestSchema,
} from '../../../infra/wire/delivery-envelope.ts'
import { type DeliveryType, deliveryTypes } from '../../../infra/wire/webhooks/events.ts'
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
import type { WebhookScope } from '../../../projections/webhooks/queries.ts'
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
    is_touch_capable: z.boolean().optional().describe('Absent if unknown.'),
    platform: text.describe('Name of the operating system.'),
    first_seen: timestamp.describe('Time when the session began.'),
    risk_time: timestamp.describe('Time of the decision.'),
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
  .describe('Decision. Its `id` is the `event_id` in REST responses and sealed tokens.')

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
      score: z.number().min(0).max(1).describe('`risk_score` divided by 100.'),
      manipulation: manipulation.nullable(),
    }),
    visitor_fingerprint: z.strictObject({ id: visitorId }).nullable(),
    request: requestSummary,
    score_breakdown: z.looseObject({ categories: z.record(z.string(), percent) }),
    signals: z.array(signal),
    attribution: z.looseObject({
      bot: attribution
        .nullable()
        .describe('Attribution of the bot; null unless the verdict is `bot`.'),
      agent: agent.describe(
        'Bot or agent that the session claims to be, as verified for this decision.',
      ),
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
      .describe('Service of the signup.'),
    gate_session_id: z
      .string()
      .regex(new RegExp(`^gate_${idCharacters}$`))
      .describe('Signup. Create only one account per id, no matter how often the event arrives.'),
    gate_account_id: z
      .string()
      .regex(new RegExp(`^gacct_${idCharacters}$`))
      .describe(
        'Account at Gate. Store it, because agent tokens and dashboard logins refer to it.',
      ),
    account_name: z.string().describe('Account name chosen by the agent, 1 to 100 characters.'),
    metadata: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('Unverified data from the agent.'),
    foil: z
      .strictObject({ verdict, score: z.number().min(0).max(1).nullable() })
      .describe(
        'Verdict on the browser that approved. `score` is its `risk_score` divided by 100.',
      ),
    delivery: deliveryRequestSchema.describe('Public key to encrypt the credentials to.'),
  })
  .meta({ id: 'GateApprovedWebhookPayload' })

/** Response that an endpoint must return for a `gate.session.approved` event. */
export const gateApprovedResponse = z
  .looseObject({ encrypted_delivery: deliveryEnvelopeSchema })
  .meta({ id: 'GateApprovedWebhookResponse' })

const testPayload = z
  .looseObject({
    object: z.literal('webhook_test'),
    endpoint: z.strictObject({ id: endpointIdSchema }),
  })
  .meta({ id: 'WebhookTestEventPayload' })

const keyPayload = z
  .looseObject({
    object: z.literal('api_key_expiry'),
    key: z.strictObject({
      id: z.string().regex(new RegExp(`^key_${idCharacters}$`)),
      type: z.enum(['publishable', 'secret']),
      name: z.string(),
      key_preview: z.string(),
      expires_at: timestamp,
    }),
  })
  .meta({ id: 'KeyExpiringPayload' })

const endpointPayload = z
  .looseObject({
    object: z.literal('webhook_endpoint_health'),
    endpoint: z.strictObject({
      id: endpointIdSchema,
      name: z.string(),
      status: z.enum(['active', 'disabled']),
      disabled_reason: z.enum(['failing', 'gone']).nullable().describe('Null while active.'),
      failing_since: timestamp.describe('First failed attempt since the last success.'),
    }),
  })
  .meta({ id: 'EndpointFailingPayload' })

const alertPayload = z
  .looseObject({
    object: z.literal('alert'),
    alert: z.strictObject({
      id: z.string().regex(new RegExp(`^alert_${idCharacters}$`)),
      view_id: z.string().regex(new RegExp(`^view_${idCharacters}$`)),
      kind: z.enum(['count', 'share', 'multiple']),
      threshold: z.number().min(0),
      window_minutes: z.int().min(1),
    }),
    value: z
      .number()
      .min(0)
      .nullable()
      .describe('Value that was compared with `threshold`. Null if there were too few sessions.'),
    at: timestamp.describe('Time of the check.'),
  })
  .meta({ id: 'AlertPayload' })

const payload = z.union([
  fingerprintPayload,
  resultPayload,
  approvalPayload,
  testPayload,
  keyPayload,
  endpointPayload,
  alertPayload,
])

export type RequestSummary = z.output<typeof requestSummary>
export type FingerprintCalculated = z.output<typeof fingerprintPayload>
export type ResultPersisted = z.output<typeof resultPayload>
/** Members that are sent. The schema allows more, for later versions. */
export type TestPayload = Pick<z.output<typeof testPayload>, 'object' | 'endpoint'>

type KeyExpiring = Pick<z.output<typeof keyPayload>, 'object' | 'key'>
type EndpointFailing = Pick<z.output<typeof endpointPayload>, 'object' | 'endpoint'>
type AlertChange = Pick<z.output<typeof alertPayload>, 'object' | 'alert' | 'value' | 'at'>

/** Webhook event that isn't about a session. Must not contain personal data, because it is stored unencrypted. */
export type Notice = WebhookScope & {
  /** Distinguishes events of a type: the same occasion is the same event. */
  occasion: string
  subject: { type: string; id: string }
  /** Time of the event, epoch milliseconds. */
  at: number
  /** Endpoint that doesn't get the event. */
  exceptEndpointId?: string
} & (
    | { type: 'key.expiring'; data: KeyExpiring }
    | { type: 'endpoint.failing'; data: EndpointFailing }
    | { type: 'alert.opened' | 'alert.closed'; data: AlertChange }
  )

const envelope = z
  .strictObject({
    id: eventIdSchema.describe('Event id, the same in every attempt and for every endpoint.'),
    object: z.literal('webhook_event'),
    type: z.enum(deliveryTypes),
    created: timestamp.describe('Time of the event, not of the delivery.'),
    data: payload,
  })
  .meta({ id: 'WebhookEventEnvelope' })

const payloads: Record<DeliveryType, z.ZodType> = {
  'session.fingerprint.calculated': fingerprintPayload,
  'session.result.persisted': resultPayload,
  'gate.session.approved': approvalPayload,
  'key.expiring': keyPayload,
  'endpoint.failing': endpointPayload,
  'alert.opened': alertPayload,
  'alert.closed': alertPayload,
  'webhook.test': testPayload,
}

/** Returns the schema of the body of a delivery. `id`: its name in the OpenAPI document. */
export const bodySchema = (type: DeliveryType, id: string) =>
  z
    .intersection(envelope, z.looseObject({ type: z.literal(type), data: payloads[type] }))
    .meta({ id })

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
        '`pending`: the next attempt is due at `next_attempt_at`; `delivering`: an attempt is in progress; `failed`: there are no more attempts; `skipped`: ended without a request, for example because the endpoint was disabled.',
      ),
    attempts: z.int().min(0),
    next_attempt_at: timestamp.nullable(),
    response_status: z
      .int()
      .nullable()
      .describe('Status of the last response; null if there was none.'),
    response_body: z
      .string()
      .nullable()
      .describe('First 4,096 bytes of the last response. Always null for approvals.'),
    error: z
      .string()
      .nullable()
      .describe('Reason why the last attempt failed or the delivery was skipped; otherwise null.'),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'WebhookDelivery' })

export type WebhookDelivery = z.output<typeof deliverySchema>

/** Returns the delivery as API responses have it. */
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
    next_attempt_at: isoOrNull(next),
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
      .describe('Object that the event is about.'),
    data: payload.describe('`data` of the webhook.'),
    webhook_deliveries: z
      .array(deliverySchema)
      .describe('Deliveries of the event, one per endpoint.'),
    created_at: timestamp,
  })
  .meta({ id: 'Event' })

export type WebhookEvent = z.output<typeof eventSchema>

export const eventsQuery = z.object({
  limit: pageQuery.limit,
  type: z.enum(deliveryTypes).optional().describe('Event type to return.'),
  endpoint_id: endpointIdSchema.optional().describe('Webhook endpoint whose events are returned.'),
})

export const eventParams = z.object({ ...organizationParams.shape, eventId: pathId('evt') })
