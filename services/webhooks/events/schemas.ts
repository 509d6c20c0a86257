import { z } from 'zod'
import { pageQuery } from '../../../infra/http/pagination.ts'
import { timestamp } from '../../../infra/http/schemas.ts'
import { deliveryTypes } from '../../../infra/wire/webhooks/events.ts'
import { payload } from '../deliveries/schemas.ts'
import { deliveryId, endpointId, eventId } from './ids.ts'

export const deliverySchema = z
  .strictObject({
    object: z.literal('webhook_delivery'),
    id: deliveryId,
    event_id: eventId,
    endpoint_id: endpointId,
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

export const eventSchema = z
  .strictObject({
    object: z.literal('event'),
    id: eventId,
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

export const eventsQuery = z.object({
  limit: pageQuery.limit,
  type: z.enum(deliveryTypes).optional().describe('Only events of this type.'),
  endpoint_id: endpointId.optional().describe('Only events with a delivery for this webhook endpoint.'),
})

export const eventParams = z.object({ organizationId: z.string(), eventId: z.string() })
