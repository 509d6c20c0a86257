import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { type SubscribableType, subscribableTypes } from '../../infra/wire/webhooks/events.ts'
import type { WebhookEndpointCreated, WebhookEndpointSecretRotated } from '../../schemas/events.ts'
import type { EndpointRow, SigningSecretRow } from './tables.ts'

const endpointEventTypes = [
  'WebhookEndpointCreated',
  'WebhookEndpointRenamed',
  'WebhookEndpointMoved',
  'WebhookEndpointSubscriptionsChanged',
  'WebhookEndpointDisabled',
  'WebhookEndpointEnabled',
  'WebhookEndpointSecretRotated',
  'WebhookEndpointFlagged',
  'WebhookEndpointRecovered',
] as const
export type EndpointEvent = Extract<RecordedEvent, { type: (typeof endpointEventTypes)[number] }>

export function isEndpointEvent(event: RecordedEvent): event is EndpointEvent {
  return endpointEventTypes.some((type) => type === event.type)
}

/** Returns undefined before the endpoint is created. Moving, enabling or disabling an endpoint clears its flag. */
export function evolveEndpoint(
  state: EndpointRow | undefined,
  event: EndpointEvent,
): EndpointRow | undefined {
  if (event.type === 'WebhookEndpointCreated') return state ?? newEndpoint(event.data)
  if (!state) return undefined
  switch (event.type) {
    case 'WebhookEndpointRenamed':
      return { ...state, name: event.data.name, updated_at: event.data.renamed_at }
    case 'WebhookEndpointMoved': {
      const { url, moved_at } = event.data
      return { ...state, url, updated_at: moved_at, target_since: moved_at, flagged_reason: null }
    }
    case 'WebhookEndpointSubscriptionsChanged':
      return {
        ...state,
        event_types: subscribable(event.data.event_types),
        filter: event.data.filter,
        updated_at: event.data.changed_at,
      }
    case 'WebhookEndpointDisabled': {
      const { reason, disabled_at } = event.data
      const changes = { status: 'disabled', disabled_reason: reason, flagged_reason: null } as const
      return { ...state, ...changes, updated_at: disabled_at }
    }
    case 'WebhookEndpointEnabled': {
      const { enabled_at: at } = event.data
      const changes = { status: 'active', disabled_reason: null, flagged_reason: null } as const
      return { ...state, ...changes, updated_at: at, target_since: at }
    }
    case 'WebhookEndpointSecretRotated':
      return {
        ...state,
        secrets: rotate(state.secrets, event.data),
        updated_at: event.data.rotated_at,
      }
    case 'WebhookEndpointFlagged':
      return { ...state, flagged_reason: event.data.reason, updated_at: event.data.flagged_at }
    case 'WebhookEndpointRecovered':
      return { ...state, flagged_reason: null, updated_at: event.data.recovered_at }
    default:
      return event satisfies never
  }
}

function newEndpoint(data: WebhookEndpointCreated): EndpointRow {
  const { endpoint_id, organization_id, environment, name, url, created_at } = data
  return {
    id: endpoint_id,
    organization_id,
    environment,
    name,
    url,
    event_types: subscribable(data.event_types),
    filter: data.filter,
    status: 'active',
    disabled_reason: null,
    flagged_reason: null,
    secrets: [{ sealed: data.signing_secret_sealed, created_at, expires_at: null }],
    created_at,
    updated_at: created_at,
    target_since: created_at,
  }
}

// Drops secrets that had expired at the time of the event. No clock is involved, so that every rebuild results in the
// same rows.
function rotate(
  secrets: SigningSecretRow[],
  data: WebhookEndpointSecretRotated,
): SigningSecretRow[] {
  const { signing_secret_sealed: sealed, rotated_at, previous_expires_at } = data
  const previous = secrets.map((secret) => ({
    ...secret,
    expires_at: secret.expires_at ?? previous_expires_at,
  }))
  const newest = { sealed, created_at: rotated_at, expires_at: null }
  return [newest, ...previous.filter(({ expires_at }) => expires_at > rotated_at)]
}

// Drops types from later releases.
function subscribable(types: string[]): SubscribableType[] {
  return [...new Set(types)].flatMap((text) => subscribableTypes.filter((type) => type === text))
}
