import { z } from 'zod'
import { pageQuery } from '../../../infra/http/pagination.ts'
import {
  organizationParams,
  pathId,
  queryTime,
  repeatable,
  timestamp,
} from '../../../infra/http/schemas.ts'
import { idPattern } from '../../../infra/ids.ts'
import { iso } from '../../../infra/iso.ts'
import { directEventType } from '../../../infra/wire/webhooks/direct-call.ts'
import { deliveryTypes } from '../../../infra/wire/webhooks/events.ts'
import {
  type AttemptRow,
  type DeliveryRow,
  deliveryStatuses,
} from '../../../projections/webhooks/tables.ts'
import { deliverySchema, endpointIdSchema } from '../events/schemas.ts'
import { unsignedHeaders } from './attempt.ts'

export const deliveryParams = organizationParams.extend({ deliveryId: pathId('wdlv') })
export const resendParams = organizationParams.extend({ endpointId: pathId('we') })

export const deliveriesQuery = z.object({
  ...pageQuery,
  status: repeatable(z.enum(deliveryStatuses)).describe(
    '`pending` includes deliveries in progress. Repeat the parameter to OR its values.',
  ),
  endpoint_id: endpointIdSchema.optional(),
  type: z.enum(deliveryTypes).optional(),
  session_id: z
    .string()
    .regex(new RegExp(`${idPattern('sid')}|${idPattern('gate')}`), {
      error: 'the id of a session (sid_...) or signup (gate_...)',
    })
    .optional()
    .describe('Session (`sid_...`) or signup (`gate_...`) that the event is about.'),
  since: queryTime.optional().describe('Earliest time of the event, inclusive.'),
  until: queryTime.optional().describe('Latest time of the event, exclusive.'),
})

export const attemptSchema = z
  .strictObject({
    object: z.literal('webhook_attempt'),
    attempt: z.int().min(1).describe('Number of the attempt. Retries continue the count.'),
    succeeded: z.boolean(),
    attempted_at: timestamp,
    duration_ms: z.int().min(0).describe('Time until the complete response, or the failure.'),
    request_headers: z
      .record(z.string(), z.string())
      .nullable()
      .describe('Headers of the request without the signatures. Null for approvals.'),
    response_status: z.int().nullable().describe('Null if there was no response.'),
    response_body: deliverySchema.shape.response_body,
    error: z.string().nullable().describe('Reason why the attempt failed; null if it succeeded.'),
  })
  .meta({ id: 'WebhookAttempt' })

export type WebhookAttempt = z.output<typeof attemptSchema>

export const resendBody = z.strictObject({
  since: queryTime.describe('Earliest time of the events, inclusive.'),
  until: queryTime.optional().describe('Latest time of the events, exclusive.'),
  status: z
    .enum(['failed', 'all'])
    .default('failed')
    .describe('`failed`: failed and skipped deliveries; `all`: successful ones, too.'),
  event_type: z.enum(deliveryTypes).optional(),
})

export const resendSchema = z
  .strictObject({
    object: z.literal('webhook_resend'),
    resent: z.int().min(0).describe('Number of deliveries that were restarted by this request.'),
    next_since: timestamp
      .nullable()
      .describe('Value of `since` to continue with; null if no deliveries are left.'),
  })
  .meta({ id: 'WebhookResend' })

export type WebhookResend = z.output<typeof resendSchema>

/** Returns the attempt as API responses have it. */
export function attemptJson(attempt: AttemptRow, { event_type, event_id }: DeliveryRow) {
  const { attempted_at } = attempt
  return {
    object: 'webhook_attempt',
    ...attempt,
    attempted_at: iso(attempted_at),
    request_headers:
      event_type === directEventType ? null : unsignedHeaders(event_id, attempted_at),
  }
}
