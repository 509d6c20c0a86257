import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { derivedHexId } from '../../../infra/ids.ts'
import { webhooksProjection } from '../../../projections/webhooks/projection.ts'
import type {
  WebhookDeliveryAttempted,
  WebhookEndpointCreated,
  WebhookEventRaised,
} from '../../../schemas/events.ts'
import { recordedIn, useReadModel } from '../read-model.ts'
import { id } from '../world-events.ts'

export const topic = 'tidegate.webhooks.v1'
export const org = (n: number) => id('org', n)
export const evt = (n: number) => id('evt', n)
export const we = (n: number) => `we_${String(n).padStart(32, '0')}`
export const wdlv = (event: number, endpoint: number) =>
  derivedHexId('wdlv', evt(event), we(endpoint))
export const day = 24 * 60 * 60 * 1000
/** Arbitrary base time. */
export const start = 1_760_000_000_000

export const recorded = recordedIn(topic)

export function endpointCreated(
  n: number,
  overrides: Partial<WebhookEndpointCreated> = {},
): DomainEvent {
  const data: WebhookEndpointCreated = {
    organization_id: org(1),
    endpoint_id: we(n),
    environment: 'live',
    name: `Endpoint ${n}`,
    url: `https://hooks.example/${n}`,
    event_types: ['session.result.persisted'],
    filter: null,
    signing_secret_sealed: Buffer.from([0, 255, n]),
    created_at: start + n,
    ...overrides,
  }
  return { type: 'WebhookEndpointCreated', data }
}

type EndpointEvent = Extract<DomainEvent, { type: `WebhookEndpoint${string}` }>
type Own<Type> = Omit<
  Extract<EndpointEvent, { type: Type }>['data'],
  'organization_id' | 'endpoint_id'
>
/** Makes events of the type about the `n`th endpoint. */
const ofEndpoint =
  <Type extends EndpointEvent['type']>(type: Type) =>
  (n: number, own: Own<Type>) => ({
    type,
    data: { organization_id: org(1), endpoint_id: we(n), ...own },
  })

export const renamed = ofEndpoint('WebhookEndpointRenamed')
export const moved = ofEndpoint('WebhookEndpointMoved')
export const subscribed = ofEndpoint('WebhookEndpointSubscriptionsChanged')
export const rotated = ofEndpoint('WebhookEndpointSecretRotated')
export const disabled = ofEndpoint('WebhookEndpointDisabled')
export const enabled = ofEndpoint('WebhookEndpointEnabled')
export const flagged = ofEndpoint('WebhookEndpointFlagged')
export const recovered = ofEndpoint('WebhookEndpointRecovered')

/** Returns a record that raises the `n`th event for the endpoints with these numbers. */
export function raised(
  n: number,
  endpoints: number[] = [1],
  overrides: Partial<WebhookEventRaised> = {},
): DomainEvent {
  const data: WebhookEventRaised = {
    event_id: evt(n),
    organization_id: org(1),
    environment: 'live',
    type: 'session.result.persisted',
    subject_type: 'session',
    subject_id: `sid_${n}`,
    data: `{"n":${n}}`,
    created_at: start + n,
    endpoint_ids: endpoints.map(we),
    route: 'queued',
    ...overrides,
  }
  return { type: 'WebhookEventRaised', data }
}

/** Numbers of a delivery's event and endpoint. */
type Whose = [event: number, endpoint: number]

const about = ([event, endpoint]: Whose) => ({
  event_id: evt(event),
  delivery_id: wdlv(event, endpoint),
  organization_id: org(1),
  environment: 'live' as const,
  endpoint_id: we(endpoint),
})

export function attempted(
  whose: Whose,
  attempt: number,
  overrides: Partial<WebhookDeliveryAttempted> = {},
): DomainEvent {
  const data: WebhookDeliveryAttempted = {
    ...about(whose),
    attempt,
    attempted_at: start + 1000 * attempt,
    duration_ms: 20,
    outcome: 'retrying',
    response_status: 500,
    response_body: 'no',
    error: 'answered 500',
    next_attempt_at: start + 1000 * (attempt + 1),
    session_subject_id: null,
    ...overrides,
  }
  return { type: 'WebhookDeliveryAttempted', data }
}

const ended = { next_attempt_at: null }

export const succeeded = (
  whose: Whose,
  attempt: number,
  overrides: Partial<WebhookDeliveryAttempted> = {},
): DomainEvent =>
  attempted(whose, attempt, {
    ...ended,
    outcome: 'succeeded',
    response_status: 200,
    response_body: 'ok',
    error: null,
    ...overrides,
  })

export const failed = (
  whose: Whose,
  attempt: number,
  overrides: Partial<WebhookDeliveryAttempted> = {},
): DomainEvent => attempted(whose, attempt, { ...ended, outcome: 'failed', ...overrides })

export function skipped(whose: Whose, skippedAt = start + 5000): DomainEvent {
  const data = { ...about(whose), reason: 'the endpoint is disabled', skipped_at: skippedAt }
  return { type: 'WebhookDeliverySkipped', data }
}

export function redelivery(whose: Whose, requestedAt = start + 9000): DomainEvent {
  return {
    type: 'WebhookRedeliveryRequested',
    data: { ...about(whose), requested_at: requestedAt },
  }
}

/** Sets up the read model in a database for the test file, emptied before each test. */
export const useWebhooksWorld = () => useReadModel(webhooksProjection, (event) => recorded(event))
