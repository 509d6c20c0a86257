import {
  column,
  nullable,
  primaryKey,
  type RowOf,
  table,
  untrustedText,
} from '../../infra/postgres/table.ts'
import type { DeliveryType, SubscribableType } from '../../infra/wire/webhooks/events.ts'
import type {
  EndpointDisabledReason,
  EndpointFilter,
  EndpointFlaggedReason,
  Environment,
} from '../../schemas/events.ts'

export interface SigningSecretRow {
  sealed: Buffer
  created_at: number
  /** null for the newest secret, which does not expire. */
  expires_at: number | null
}

/** Times are epoch milliseconds in all tables of this file. */
export const webhookEndpoints = table('webhook_endpoints', {
  id: primaryKey(column.id(), 'endpoint_id'),
  organization_id: column.id(),
  environment: column.text<Environment>(),
  name: untrustedText(column.text()),
  url: untrustedText(column.text()),
  event_types: column.json<SubscribableType[]>(),
  /** Decisions whose session events are sent; null = all. */
  filter: nullable(column.json<EndpointFilter>()),
  status: column.text<'active' | 'disabled'>(),
  /** null while the endpoint is active. */
  disabled_reason: nullable(column.text<EndpointDisabledReason>()),
  /** Reason to disable the endpoint once no Gate service needs it; null = not flagged. */
  flagged_reason: nullable(column.text<EndpointFlaggedReason>()),
  /** Encrypted, in base64. */
  secrets: column.json<(Omit<SigningSecretRow, 'sealed'> & { sealed: string })[]>(),
  created_at: column.bigint(),
  updated_at: column.bigint(),
  /** Time when the endpoint was created, last enabled or moved. Earlier failures are ignored. */
  target_since: column.bigint(),
})
export type StoredEndpoint = RowOf<typeof webhookEndpoints>
export type EndpointRow = Omit<StoredEndpoint, 'secrets'> & { secrets: SigningSecretRow[] }

export function endpointRow({ secrets, ...row }: StoredEndpoint): EndpointRow {
  const decoded = secrets.map((secret) => ({
    ...secret,
    sealed: Buffer.from(secret.sealed, 'base64'),
  }))
  return { ...row, secrets: decoded }
}

export function storedEndpoint({ secrets, ...row }: EndpointRow): StoredEndpoint {
  const encoded = secrets.map((secret) => ({ ...secret, sealed: secret.sealed.toString('base64') }))
  return { ...row, secrets: encoded }
}

export const webhookEvents = table('webhook_events', {
  id: primaryKey(column.id(), 'event_id'),
  organization_id: column.id(),
  environment: column.text<Environment>(),
  /** Can be a type from a later release. */
  type: untrustedText(column.text()),
  subject_type: untrustedText(column.text()),
  subject_id: untrustedText(column.id()),
  data: untrustedText(column.text()),
  created_at: column.bigint(),
  /** Trace context for the attempts; null if the event is not traced. */
  traceparent: nullable(column.text()),
  /** Rows expire relative to the newest event of their partition. */
  log_partition: column.integer(),
})
export type WebhookEventRow = Omit<
  RowOf<typeof webhookEvents>,
  'log_partition' | 'traceparent' | 'type'
> & {
  type: DeliveryType
}

/** Stored in place of data that cannot be decrypted, because the session's data key is deleted. */
export const unreadableData = '{}'

/** Retention of events with their deliveries and attempts. */
export const webhookRetentionMs = 30 * 24 * 60 * 60 * 1000

export const deliveryStatuses = ['pending', 'succeeded', 'failed', 'skipped'] as const

export const webhookDeliveries = table('webhook_deliveries', {
  id: primaryKey(column.id(), 'delivery_id'),
  event_id: column.id(),
  endpoint_id: column.id(),
  organization_id: column.id(),
  environment: column.text<Environment>(),
  event_type: untrustedText(column.text()),
  /** The API returns a pending delivery that is in flight as `delivering`. */
  status: column.text<(typeof deliveryStatuses)[number]>(),
  attempts: column.integer(),
  /** Position in the retry schedule: attempts since the event was raised or last redelivered. */
  attempts_in_round: column.integer(),
  /** null if no further attempt is planned, or for a direct call, which the queue ignores. */
  next_attempt_at: nullable(column.bigint()),
  response_status: nullable(column.integer()),
  response_body: nullable(untrustedText(column.text())),
  /** Reason why the last attempt failed or the delivery was skipped. */
  error: nullable(untrustedText(column.text())),
  created_at: column.bigint(),
  updated_at: column.bigint(),
  /** Event ids of the skips and redeliveries that were applied; null if none. */
  changes: nullable(column.json<readonly string[]>()),
})
export const deliveryFields = webhookDeliveries.selectWithout('d', 'changes')
export type StoredDelivery = Omit<RowOf<typeof webhookDeliveries>, 'changes'>
export type DeliveryRow = Omit<StoredDelivery, 'event_type'> & { event_type: DeliveryType }

export const webhookAttempts = table(
  'webhook_attempts',
  {
    delivery_id: column.id(),
    attempt: column.integer(),
    endpoint_id: column.id(),
    succeeded: column.boolean(),
    attempted_at: column.bigint(),
    duration_ms: column.integer(),
    response_status: nullable(column.integer()),
    response_body: nullable(untrustedText(column.text())),
    error: nullable(untrustedText(column.text())),
  },
  { key: ['delivery_id', 'attempt'] },
)
export type AttemptRow = Omit<RowOf<typeof webhookAttempts>, 'delivery_id' | 'endpoint_id'>

export const webhookPartitionTimes = table('webhook_partition_times', {
  log_partition: primaryKey(column.integer()),
  newest_at: column.bigint(),
})

export const webhookAppliedEvents = table('webhook_applied_events', {
  event_id: primaryKey(column.id()),
})

export const webhookApplyIndexes = `
  create index on webhook_events (log_partition, created_at);
  create index on webhook_deliveries (event_id);
`

// Disabled endpoints are kept forever, so the first index finds active and recent ones without reading the rest. A list
// of events scans the second index once per type, and a list of deliveries the third once per type and status, because
// another index would slow down every insert.
export const webhookReadIndexes = `
  create index on webhook_endpoints (organization_id, (status = 'active'), environment, created_at, endpoint_id);
  create index on webhook_events (organization_id, environment, type, created_at, event_id);
  create index on webhook_deliveries (endpoint_id, event_type, status, created_at, event_id);
  create index on webhook_deliveries (endpoint_id, next_attempt_at, delivery_id) where next_attempt_at is not null;
  create index on webhook_deliveries (next_attempt_at) where next_attempt_at is not null;
  create index on webhook_deliveries (status) where status = 'failed';
  create index on webhook_attempts (endpoint_id, succeeded, attempted_at);
`
