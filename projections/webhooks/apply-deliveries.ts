import type { Cte } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { insertRows, type RowOf, saveRows } from '../../infra/postgres/table.ts'
import type { VisitorErased, WebhookDeliveryAttempted } from '../../schemas/events.ts'
import {
  type DeliveryEvent,
  type DeliveryState,
  evolvePartition,
  isExpired,
  type PartitionState,
  type RaisedEvent,
} from './evolve-delivery.ts'
import {
  type StoredDelivery,
  unreadableData,
  webhookAttempts,
  webhookDeliveries,
  webhookEvents,
  webhookPartitionTimes,
  webhookRetentionMs,
} from './tables.ts'

/**
 * Prunes expired events, and returns the writes of a batch: a few statements for any number of events and partitions.
 * The resulting rows do not depend on the boundaries of batches.
 */
export async function pruneAndBuildWrites(tx: Tx, events: DeliveryEvent[]): Promise<Cte[]> {
  const partitions = await loadPartitions(tx, events)
  const newestBefore = new Map([...partitions].map(([id, { newest }]) => [id, newest]))
  for (const event of events) {
    const partition = partitions.get(event.position.partition)
    if (partition) evolvePartition(partition, event)
  }
  const advanced = [...partitions].filter(
    ([id, { newest }]) => newest > (newestBefore.get(id) ?? newest),
  )
  // Before the inserts, because a new event can have the id of a pruned one.
  if (advanced.length > 0) {
    const cutoffs = advanced.map(([partition, { newest }]) => ({
      partition,
      before: newest - webhookRetentionMs,
    }))
    await prune(tx, cutoffs)
  }
  const times = advanced.map(([log_partition, { newest }]) => ({
    log_partition,
    newest_at: newest,
  }))
  return [...saveRows(webhookPartitionTimes, times), ...rowWrites([...partitions.values()])]
}

async function loadPartitions(
  tx: Tx,
  events: DeliveryEvent[],
): Promise<Map<number, PartitionState>> {
  const deliveryIds = events.flatMap(({ data }) =>
    'delivery_id' in data ? [data.delivery_id] : [],
  )
  const raised = events.filter(({ type }) => type === 'WebhookEventRaised')
  const deliveries = await loadDeliveries(tx, deliveryIds)
  const times = await loadTimes(tx, raised)
  const partitions = new Set(events.map(({ position }) => position.partition))
  // Partitions can share these maps, because events refer only to rows of their own partition.
  return new Map(
    [...partitions].map((partition) => {
      const newest = times.newest.get(partition) ?? -Infinity
      return [
        partition,
        { newest, events: times.events, raised: new Map(), deliveries, changed: new Set() },
      ]
    }),
  )
}

function rowWrites(partitions: PartitionState[]): Cte[] {
  const raised = partitions.flatMap((partition) =>
    [...partition.raised.values()].filter(({ data }) => !isExpired(partition, data.created_at)),
  )
  const states = partitions.flatMap((partition) =>
    [...partition.changed]
      .flatMap((id) => partition.deliveries.get(id) ?? [])
      .filter(({ row }) => !isExpired(partition, row.created_at)),
  )
  return [...insertRows(webhookEvents, raised.map(eventRow)), ...saveDeliveries(states)]
}

function eventRow({ data, meta, position }: RaisedEvent): RowOf<typeof webhookEvents> {
  const {
    event_id: id,
    organization_id,
    environment,
    type,
    subject_type,
    subject_id,
    created_at,
  } = data
  const subject = { subject_type, subject_id, data: data.data || unreadableData }
  return {
    id,
    organization_id,
    environment,
    type,
    ...subject,
    created_at,
    traceparent: meta.traceparent ?? null,
    log_partition: position.partition,
  }
}

interface CreationTimes {
  /** Creation time of the newest event, by partition. */
  newest: Map<number, number>
  /** Creation time by event id. */
  events: Map<string, number>
}

async function loadTimes(tx: Tx, raised: DeliveryEvent[]): Promise<CreationTimes> {
  if (raised.length === 0) return { newest: new Map(), events: new Map() }
  const partitions = [...new Set(raised.map(({ position }) => position.partition))]
  const eventIds = raised.map(({ data }) => data.event_id)
  const { rows } = await tx.query<{ id: string | null; log_partition: number; at: number }>({
    name: 'load-webhook-event-times',
    text: `select null as id, log_partition, newest_at::float8 as at from webhook_partition_times
        where log_partition = any($1)
      union all select event_id, log_partition, created_at::float8 from webhook_events where event_id = any($2)`,
    values: [partitions, eventIds],
  })
  const newest = rows.flatMap(({ id, log_partition, at }) =>
    id === null ? [[log_partition, at] as const] : [],
  )
  const events = rows.flatMap(({ id, at }) => (id === null ? [] : [[id, at] as const]))
  return { newest: new Map(newest), events: new Map(events) }
}

type LoadedDelivery = StoredDelivery & {
  changes: string[] | null
  attempted: number[]
  successful: number[]
}

// Locks the events, because the retention job of another process may be about to delete them.
async function loadDeliveries(tx: Tx, ids: string[]): Promise<Map<string, DeliveryState>> {
  if (ids.length === 0) return new Map()
  const { rows } = await tx.query<LoadedDelivery>({
    name: 'load-webhook-deliveries',
    text: `select ${webhookDeliveries.select('d')},
        array(select attempt from webhook_attempts a where a.delivery_id = d.delivery_id) as attempted,
        array(select attempt from webhook_attempts a where a.delivery_id = d.delivery_id and succeeded) as successful
      from webhook_deliveries d join webhook_events e using (event_id) where d.delivery_id = any($1)
      for key share of e`,
    values: [ids],
  })
  return new Map(rows.map((row) => [row.id, deliveryState(row)]))
}

function deliveryState(loaded: LoadedDelivery): DeliveryState {
  const { changes, attempted, successful, ...row } = loaded
  const outcomes = new Map(attempted.map((attempt) => [attempt, successful.includes(attempt)]))
  return { row, outcomes, changes: changes ?? [], newAttempts: [] }
}

function saveDeliveries(states: DeliveryState[]): Cte[] {
  const rows = states.map(({ row, changes }) => ({
    ...row,
    changes: changes.length === 0 ? null : changes,
  }))
  const attempts = states.flatMap(({ newAttempts }) => newAttempts)
  return [
    ...saveRows(webhookDeliveries, rows),
    ...saveRows(webhookAttempts, attempts.map(attemptRow)),
  ]
}

function attemptRow(data: WebhookDeliveryAttempted): RowOf<typeof webhookAttempts> {
  const { delivery_id, attempt, endpoint_id, outcome, attempted_at, duration_ms } = data
  const { response_status, response_body, error } = data
  const response = { duration_ms, response_status, response_body, error }
  const succeeded = outcome === 'succeeded'
  return { delivery_id, attempt, endpoint_id, succeeded, attempted_at, ...response }
}

// Limits memory: after weeks without events, all events of a partition expire at once.
const chunkSize = 5000

// Deletes each partition's events created before a time (epoch milliseconds), with their deliveries and attempts.
async function prune(tx: Tx, cutoffs: { partition: number; before: number }[]): Promise<void> {
  for (let deleted = chunkSize; deleted >= chunkSize; ) {
    const { rows } = await tx.query<{ event_id: string }>({
      name: 'prune-webhook-events',
      // The order makes PostgreSQL scan the index from the oldest entry, whatever its row estimate.
      text: `delete from webhook_events where event_id = any(array(
        select old.event_id from unnest($1::integer[], $2::bigint[]) as p (log_partition, before)
        cross join lateral (
          select event_id from webhook_events e where e.log_partition = p.log_partition and e.created_at < p.before
          order by e.created_at limit ${chunkSize}
        ) old)) returning event_id`,
      values: [cutoffs.map(({ partition }) => partition), cutoffs.map(({ before }) => before)],
    })
    deleted = rows.length
    await pruneDeliveries(tx, rows)
  }
}

/** Deletes events about erased sessions. Scans all events of the organization, because the subject is not indexed. */
export async function eraseDeliveries(tx: Tx, erased: VisitorErased[]): Promise<void> {
  for (const { organization_id, environment, session_ids } of erased) {
    const { rows } = await tx.query<{ event_id: string }>(
      `delete from webhook_events where organization_id = $1 and environment = $2
         and subject_type in ('session', 'gate_session') and subject_id = any($3) returning event_id`,
      [organization_id, environment, session_ids],
    )
    await pruneDeliveries(tx, rows)
  }
}

/** Deletes the deliveries of deleted events, and their attempts. */
export async function pruneDeliveries(tx: Tx, events: { event_id: string }[]): Promise<void> {
  if (events.length === 0) return
  const { rows } = await tx.query<{ delivery_id: string }>({
    name: 'prune-webhook-deliveries',
    text: `delete from webhook_deliveries where event_id = any($1) returning delivery_id`,
    values: [events.map(({ event_id }) => event_id)],
  })
  if (rows.length === 0) return
  await tx.query({
    name: 'prune-webhook-attempts',
    text: `delete from webhook_attempts where delivery_id = any($1)`,
    values: [rows.map((row) => row.delivery_id)],
  })
}
