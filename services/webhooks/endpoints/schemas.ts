import { z } from 'zod'
import { atLeastOne, timestamp } from '../../../infra/http/schemas.ts'
import { subscribableTypes } from '../../../infra/wire/webhooks/events.ts'
import { deliveryId, endpointId, eventId } from '../events/ids.ts'
import { deliverySchema } from '../events/schemas.ts'
import { bounds } from './checked-fields.ts'

const statuses = ['active', 'disabled'] as const

export const endpointSchema = z
  .strictObject({
    object: z.literal('webhook_endpoint'),
    id: endpointId,
    name: z.string(),
    url: z.url(),
    status: z.enum(statuses),
    disabled_reason: z
      .enum(['manual', 'failing', 'gone'])
      .nullable()
      .describe(
        'null while active. manual: disabled here; failing: no delivery succeeded for five days; gone: it answered 410.',
      ),
    flagged_reason: z
      .enum(['failing', 'gone'])
      .nullable()
      .describe(
        'Why it would have been disabled if no active service were told of approvals here; deliveries go on. null once one succeeds, and when it is enabled, moved or disabled.',
      ),
    event_types: z.array(z.enum(subscribableTypes)),
    signing_secret: z
      .string()
      .optional()
      .describe('Returned only when the endpoint is created or its secret is rotated.'),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'WebhookEndpoint' })

export const testSchema = z
  .strictObject({
    object: z.literal('webhook_test'),
    event_id: eventId,
    delivery_ids: z.array(deliveryId),
    latest_delivery: deliverySchema.nullable(),
  })
  .meta({ id: 'WebhookTest' })

// Lengths are for the description; the deciders check them.
const name = z.string().meta({ minLength: 1, maxLength: bounds.name })
const url = z
  .string()
  .meta({ format: 'uri', maxLength: bounds.url })
  .describe(
    'https, and a host that is reachable from the internet, unless the operator allows its network. Kept as requests name it: percent-encoded, and the host in lower case.',
  )
const eventTypes = z.array(z.enum(subscribableTypes)).meta({ minItems: 1 })

export const createEndpointBody = z.strictObject({ name, url, event_types: eventTypes })

export const updateEndpointBody = atLeastOne({
  name: name.optional(),
  url: url.optional(),
  status: z
    .enum(statuses)
    .optional()
    .describe(
      'disabled: nothing is sent there until it is active again. Refused while an active service is told of approvals there.',
    ),
  event_types: eventTypes
    .optional()
    .describe(
      'Replaces all that it is subscribed to. gate.session.approved has to stay while an active service is told of approvals there.',
    ),
})

export const endpointParams = z.object({ organizationId: z.string(), endpointId: z.string() })
