import type { FastifyInstance } from 'fastify'
import type { DescribedHeader, DescribedWebhook } from '../../infra/http/openapi.ts'
import { wire } from '../../infra/wire/names.ts'
import { standardHeaders } from '../../infra/wire/webhooks/signature.ts'
import { type EndpointRouteOptions, endpointRoutes } from './endpoints/routes.ts'
import { type EventRouteOptions, eventRoutes } from './events/routes.ts'
import {
  fingerprintCalculatedEvent,
  gateApprovedEvent,
  gateApprovedResponse,
  resultPersistedEvent,
  testEvent,
} from './events/schemas.ts'

/** `/v1/organizations/{organizationId}/webhooks/endpoints` and `.../events`, and what endpoints are sent. */
export function webhookRoutes(
  app: FastifyInstance,
  options: EndpointRouteOptions & EventRouteOptions,
): void {
  endpointRoutes(app, options)
  eventRoutes(app, options)
  for (const webhook of described) app.describeWebhook(webhook)
}

const string = (pattern: string) => ({ type: 'string', pattern })
const eventId = string('^evt_[0-9a-hjkmnp-tv-z]{26}$')
const seconds = string('^[0-9]+$')

const headers: Record<string, DescribedHeader> = {
  'Idempotency-Key': {
    description: "The event's id: deal with each once, since it may come more than once.",
    schema: eventId,
  },
  [wire.webhookTimestampHeader]: { description: 'The same as webhook-timestamp.', schema: seconds },
  [wire.webhookSignatureHeader]: {
    description:
      'Hexadecimal HMAC-SHA256 of timestamp, full stop, body; the key is the text of the newest signing secret, whsec_ included.',
    schema: string('^[0-9a-f]{64}$'),
  },
  [standardHeaders.id]: { description: "The event's id.", schema: eventId },
  [standardHeaders.timestamp]: {
    description:
      'When this attempt began, in Unix seconds. Refuse what is more than 300 away from your clock.',
    schema: seconds,
  },
  [standardHeaders.signature]: {
    description:
      'Standard Webhooks 1.0.0: for each live secret, separated by spaces, `v1,` and the base64 HMAC-SHA256 of id, full stop, timestamp, full stop, body; the key is what follows whsec_, decoded from base64.',
    schema: string('^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$'),
  },
}

const retryAfter: DescribedHeader = {
  description: 'Seconds or an HTTP date. Makes the wait longer, up to twice that of the schedule.',
  schema: { type: 'string' },
}

const answers: DescribedWebhook['answers'] = {
  '2XX': { description: 'Accepted, if it comes within 15 seconds. The body does not matter.' },
  '410': {
    description:
      'The delivery has failed and the endpoint is disabled: it is sent nothing more. One that an active service is told of approvals at is only flagged.',
  },
  '429': {
    description: 'Tried again after at least a minute.',
    headers: { 'Retry-After': retryAfter },
  },
  default: {
    description:
      'Not accepted, and tried again on schedule, ten attempts in all. Redirects are not followed and count here.',
    headers: { 'Retry-After': retryAfter },
  },
}

const failing = 'The signup has failed, and nothing was made for it as far as we know.'
const again =
  'Sent again within the 15 minutes that the signup has, after 1, 2, 4, 8, 15, 30, then 60 s.'

// Somebody waits for the answer to an approval.
const approvalAnswers: DescribedWebhook['answers'] = {
  '2XX': {
    description: `The account is made, if this comes within 10 seconds with an envelope for the key of the event. ${again.replace('Sent', 'Anything else is sent')}`,
    body: gateApprovedResponse,
  },
  '408': { description: again },
  '409': { description: again },
  '425': { description: again },
  '429': { description: again },
  '3XX': { description: failing },
  '4XX': { description: failing },
  default: { description: again },
}

const shared = {
  tag: 'Webhooks',
  description:
    'Verify one of the two signatures against the bytes of the body before you parse it. No order is promised, and an event may come more than once. Ignore members that you do not know.',
  headers,
  answers,
}

const described: DescribedWebhook[] = [
  {
    ...shared,
    type: 'session.fingerprint.calculated',
    operationId: 'sessionFingerprintCalculatedWebhook',
    summary: "A session's visitor is known; sent once for a session",
    body: fingerprintCalculatedEvent,
  },
  {
    ...shared,
    type: 'session.result.persisted',
    operationId: 'sessionResultPersistedWebhook',
    summary: "A session's result is final; sent once for a session",
    body: resultPersistedEvent,
  },
  {
    ...shared,
    type: 'gate.session.approved',
    operationId: 'gateSessionApprovedWebhook',
    summary: 'A person approved a signup; make the account and answer with its credentials, sealed',
    description: `${shared.description} Make one account for each gate_session_id: the event may come again after you answered. It is sent only to the endpoint that the service names.`,
    answers: approvalAnswers,
    body: gateApprovedEvent,
  },
  {
    ...shared,
    type: 'webhook.test',
    operationId: 'testWebhook',
    summary: 'A test, sent when you ask for one',
    body: testEvent,
  },
]
