import type { FastifyInstance } from 'fastify'
import type { DescribedHeader, DescribedWebhook } from '../../infra/http/openapi.ts'
import { wireNames } from '../../infra/wire/names.ts'
import { type DeliveryType, deliveryTypes } from '../../infra/wire/webhooks/events.ts'
import { standardHeaders } from '../../infra/wire/webhooks/signature.ts'
import { type DeliveryRouteOptions, deliveryRoutes } from './deliveries/routes.ts'
import { type EndpointRouteOptions, endpointRoutes } from './endpoints/routes.ts'
import { type EventRouteOptions, eventRoutes } from './events/routes.ts'
import { bodySchema, gateApprovedResponse } from './events/schemas.ts'

/** Adds `/v1/organizations/{organizationId}/webhooks/...` and `.../events`, and documents the webhooks sent. */
export function webhookRoutes(
  app: FastifyInstance,
  options: EndpointRouteOptions & EventRouteOptions & DeliveryRouteOptions,
): void {
  endpointRoutes(app, options)
  deliveryRoutes(app, options)
  eventRoutes(app, options)
  for (const type of deliveryTypes) app.describeWebhook(describedWebhook(type))
}

const string = (pattern: string) => ({ type: 'string', pattern })
const eventId = string('^evt_[0-9a-hjkmnp-tv-z]{26}$')
const seconds = string('^[0-9]+$')

const headers: Record<string, DescribedHeader> = {
  'Idempotency-Key': {
    description:
      'Event id. Process each id once, because an event can be delivered more than once.',
    schema: eventId,
  },
  [wireNames.webhookTimestampHeader]: {
    description: 'Same as `webhook-timestamp`.',
    schema: seconds,
  },
  [wireNames.webhookSignatureHeader]: {
    description:
      'Hexadecimal HMAC-SHA256 of `timestamp.body`. The key is the newest signing secret as text, including `whsec_`.',
    schema: string('^[0-9a-f]{64}$'),
  },
  [standardHeaders.id]: { description: 'Event id.', schema: eventId },
  [standardHeaders.timestamp]: {
    description:
      'Start of this attempt in Unix seconds. Reject deliveries more than 300 seconds off your clock.',
    schema: seconds,
  },
  [standardHeaders.signature]: {
    description:
      'Signatures by Standard Webhooks 1.0.0, one per valid secret, separated by spaces: `v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`. The key is the secret after `whsec_`, decoded from base64.',
    schema: string('^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$'),
  },
}

const retryAfter: DescribedHeader = {
  description:
    'Seconds or an HTTP date. Extends the wait before the next attempt, up to twice the scheduled wait.',
  schema: { type: 'string' },
}

const responses: DescribedWebhook['responses'] = {
  '2XX': {
    description: 'Delivered, if the response is complete within 15 seconds. The body is ignored.',
  },
  '410': {
    description:
      'The delivery fails and the endpoint is disabled. An endpoint that receives the approvals of an active Gate service is only flagged.',
  },
  '429': {
    description: 'Retried after at least a minute.',
    headers: { 'Retry-After': retryAfter },
  },
  default: {
    description:
      'Failed attempt, retried on schedule: ten attempts in all. Redirects are not followed and count as failures.',
    headers: { 'Retry-After': retryAfter },
  },
}

const rejection = 'The signup is rejected. Tidegate assumes that no account was created.'
const retrySchedule =
  'Retried after 1, 2, 4, 8, 15, 30 and then every 60 seconds, until the signup expires after 15 minutes.'

// A person waits for the response to an approval, so its retries are faster.
const approvalResponses: DescribedWebhook['responses'] = {
  '2XX': {
    description: `The signup is approved, if the response arrives within 10 seconds and has an envelope for \`delivery.key_id\` of the event. Otherwise the delivery is retried as after a 408.`,
    body: gateApprovedResponse,
  },
  '408': { description: retrySchedule },
  '409': { description: retrySchedule },
  '425': { description: retrySchedule },
  '429': { description: retrySchedule },
  '3XX': { description: rejection },
  '4XX': { description: rejection },
  default: { description: retrySchedule },
}

const webhooks: Record<
  DeliveryType,
  Pick<DescribedWebhook, 'summary' | 'description'> & Partial<DescribedWebhook>
> = {
  'session.fingerprint.calculated': {
    summary: 'Visitor identified',
    description:
      'Sent at the first decision of a session that has a visitor, and again with a new id if a correction changes the visitor.',
  },
  'session.result.persisted': {
    summary: 'Session result final',
    description: 'Sent once per session, at its first final decision.',
  },
  'gate.session.approved': {
    summary: 'Signup approved',
    description:
      'Sent when a person approves a signup, only to the endpoint of the service. Create the account and respond with its encrypted credentials. Create one account per `gate_session_id`, because the event can arrive again after your response.',
    responses: approvalResponses,
  },
  'key.expiring': {
    summary: 'API key expires soon',
    description:
      "Sent once per expiry, a week before it, or at half of the key's lifetime if that is later.",
  },
  'endpoint.failing': {
    summary: 'Webhook endpoint fails',
    description:
      'Sent when an endpoint has had no success for an hour and at least three failed attempts, and when it is disabled automatically or flagged. Goes to the other subscribed endpoints of its environment.',
  },
  'alert.opened': {
    summary: 'Alert opened',
    description: 'Sent when the sessions of a view reach the threshold of an alert.',
  },
  'alert.closed': {
    summary: 'Alert closed',
    description: 'Sent when an open alert has stayed below its threshold for three checks.',
  },
  'webhook.test': {
    operationId: 'testWebhook',
    summary: 'Test event',
    description: 'Sent only on request. Needs no subscription.',
  },
}

function describedWebhook(type: DeliveryType): DescribedWebhook {
  const { description, ...webhook } = webhooks[type]
  const name = type.replace(/\.(.)/g, (_, letter: string) => letter.toUpperCase())
  return {
    type,
    operationId: `${name}Webhook`,
    tag: 'Webhooks',
    description: `${description} Verify one of the two signatures against the raw body before you parse it. Events can arrive out of order and more than once. Ignore members that you do not know.`,
    headers,
    responses,
    body: bodySchema(type, `${name.charAt(0).toUpperCase()}${name.slice(1)}WebhookEvent`),
    ...webhook,
  }
}
