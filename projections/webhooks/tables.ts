import {
  column,
  foreign,
  nullable,
  primaryKey,
  type RowOf,
  table,
} from '../../infra/postgres/table.ts'
import type { DeliveryType, SubscribableType } from '../../infra/wire/webhooks/events.ts'
import type {
  EndpointDisabledReason,
  EndpointFlaggedReason,
  Environment,
} from '../../schemas/events.ts'

export interface SigningSecretRow {
  sealed: Buffer
  created_at: number
  /** It signs until then; null = the newest, which has no end. */
  expires_at: number | null
}

/** Times are epoch milliseconds, as in all tables here. */
export const webhookEndpoints = table('webhook_endpoints', {
  id: primaryKey(column.id(), 'endpoint_id'),
  organization_id: column.id(),
  environment: column.text<Environment>(),
  name: foreign(column.text()),
  url: foreign(column.text()),
  event_types: column.json<SubscribableType[]>(),
  status: column.text<'active' | 'disabled'>(),
  /** null while it is active. */
  disabled_reason: nullable(column.text<EndpointDisabledReason>()),
  /** Why it would be disabled if no service of Gate needed it; null = there is no reason. */
  flagged_reason: nullable(column.text<EndpointFlaggedReason>()),
  /** With the sealed secret in base64. */
  secrets: column.json<(Omit<SigningSecretRow, 'sealed'> & { sealed: string })[]>(),
  created_at: column.bigint(),
  updated_at: column.bigint(),
  /** When it was created, or last enabled or moved. Failures before that say nothing about it now. */
  target_since: column.bigint(),
})
export type StoredEndpoint = RowOf<typeof webhookEndpoints>
export type EndpointRow = Omit<StoredEndpoint, 'secrets'> & { secrets: SigningSecretRow[] }

export function endpointRow({ secrets, ...row }: StoredEndpoint): EndpointRow {
  const opened = secrets.map((secret) => ({
    ...secret,
    sealed: Buffer.from(secret.sealed, 'base64'),
  }))
  return { ...row, secrets: opened }
}

export function storedEndpoint({ secrets, ...row }: EndpointRow): StoredEndpoint {
  const stored = secrets.map((secret) => ({ ...secret, sealed: secret.sealed.toString('base64') }))
  return { ...row, secrets: stored }
}

export const webhookEvents = table('webhook_events', {
  id: primaryKey(column.id(), 'event_id'),
  organization_id: column.id(),
  environment: column.text<Environment>(),
  /** May be a type that only a later version knows. */
  type: foreign(column.text()),
  subject_type: foreign(column.text()),
  subject_id: foreign(column.id()),
  data: foreign(column.text()),
  created_at: column.bigint(),
  /** The trace that its attempts belong to; null where nobody traces it. */
  traceparent: nullable(column.text()),
  /** The newest event of the same partition decides how old rows may get. */
  log_partition: column.integer(),
})
export type WebhookEventRow = Omit<
  RowOf<typeof webhookEvents>,
  'log_partition' | 'traceparent' | 'type'
> & {
  type: DeliveryType
}

/** Stored for an event about a session whose data key is gone. No event says so little. */
export const unreadableData = '{}'

/** How long events stay, in milliseconds, with their deliveries and attempts: 30 days. */
export const webhookRetentionMs = 30 * 24 * 60 * 60 * 1000

export const webhookDeliveries = table('webhook_deliveries', {
  id: primaryKey(column.id(), 'delivery_id'),
  event_id: column.id(),
  endpoint_id: column.id(),
  organization_id: column.id(),
  environment: column.text<Environment>(),
  event_type: foreign(column.text()),
  /** The API returns a pending delivery that is in flight as `delivering`. */
  status: column.text<'pending' | 'succeeded' | 'failed' | 'skipped'>(),
  attempts: column.integer(),
  /** Attempts since it was raised or last redelivered: the place in the retry schedule. */
  attempts_in_round: column.integer(),
  /** null when no attempt is due, or when whoever raised it makes the calls. */
  next_attempt_at: nullable(column.bigint()),
  response_status: nullable(column.integer()),
  response_body: nullable(foreign(column.text())),
  /** Why the last attempt failed, or why the delivery was skipped. */
  error: nullable(foreign(column.text())),
  created_at: column.bigint(),
  updated_at: column.bigint(),
  /** The log's event ids of its skips and redeliveries; null where it had none. */
  changes: nullable(column.json<readonly string[]>()),
})
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
  },
  { key: ['delivery_id', 'attempt'] },
)

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

/**
 * Endpoints stay for ever once they are disabled: active ones, and the newest, are found without reading all of them.
 * Lists of events without a type look into the index once for each type: one index more would cost every insert.
 */
export const webhookReadIndexes = `
  create index on webhook_endpoints (organization_id, (status = 'active'), environment, created_at, endpoint_id);
  create index on webhook_events (organization_id, environment, type, created_at, event_id);
  create index on webhook_deliveries (endpoint_id, event_type, created_at, event_id);
  create index on webhook_deliveries (endpoint_id, next_attempt_at, delivery_id) where next_attempt_at is not null;
  create index on webhook_deliveries (next_attempt_at) where next_attempt_at is not null;
  create index on webhook_deliveries (status, updated_at, delivery_id) where status in ('failed', 'skipped');
  create index on webhook_attempts (endpoint_id, succeeded, attempted_at);
`
