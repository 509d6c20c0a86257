import type { Tx } from '../../infra/postgres/pool.ts'
import { insertNewRows, type RowOf, saveRows } from '../../infra/postgres/table.ts'
import type { WebhookDeliveryAttempted } from '../../schemas/events.ts'
import {
  type DeliveryEvent,
  type DeliveryState,
  evolveHistory,
  type History,
  isTooOld,
  type RaisedEvent,
} from './evolve-delivery.ts'
import {
  type StoredDelivery,
  webhookAttempts,
  webhookDeliveries,
  webhookEvents,
  webhookPartitionTimes,
  webhookRetentionMs,
} from './tables.ts'

/**
 * A batch of any size takes a handful of statements. The rows are the same wherever the log is cut into
 * batches.
 */
export async function applyDeliveryEvents(tx: Tx, events: DeliveryEvent[]): Promise<void> {
  const history = await loadHistory(tx, events)
  const before = history.newest
  for (const event of events) evolveHistory(history, event)
  const partition = events[0]?.position.partition
  if (partition !== undefined && history.newest > before) await moveOn(tx, partition, history.newest)
  await save(tx, history)
}

async function loadHistory(tx: Tx, events: DeliveryEvent[]): Promise<History> {
  const deliveryIds = events.flatMap(({ data }) => ('delivery_id' in data ? [data.delivery_id] : []))
  const deliveries = await loadDeliveries(tx, deliveryIds)
  return { ...(await loadRaised(tx, events)), raised: new Map(), deliveries, changed: new Set() }
}

async function loadRaised(tx: Tx, events: DeliveryEvent[]): Promise<Pick<History, 'newest' | 'events'>> {
  const raised = events.filter(({ type }) => type === 'WebhookEventRaised')
  const [first] = raised
  if (!first) return { newest: -Infinity, events: new Map() }
  const ids = raised.map(({ data }) => data.event_id)
  const { newest = -Infinity, events: known } = await loadTimes(tx, first.position.partition, ids)
  return { newest, events: known }
}

/** Prunes before rows are written: one of them may have the id of a pruned event. */
async function moveOn(tx: Tx, partition: number, newest: number): Promise<void> {
  await prune(tx, { partition, before: newest - webhookRetentionMs })
  await saveRows(tx, webhookPartitionTimes, [{ log_partition: partition, newest_at: newest }])
}

async function save(tx: Tx, history: History): Promise<void> {
  const isKept = ({ created_at }: { created_at: number }) => !isTooOld(history, created_at)
  const { raised, deliveries, changed } = history
  const keptEvents = [...raised.values()].filter(({ data }) => isKept(data))
  await insertNewRows(tx, webhookEvents, keptEvents.map(eventRow))
  const states = [...changed].flatMap((id) => deliveries.get(id) ?? [])
  await saveDeliveries(
    tx,
    states.filter(({ row }) => isKept(row)),
  )
}

function eventRow({ data, position }: RaisedEvent): RowOf<typeof webhookEvents> {
  const { event_id: id, organization_id, environment, type, subject_type, subject_id, created_at } = data
  const subject = { subject_type, subject_id, data: data.data }
  return { id, organization_id, environment, type, ...subject, created_at, log_partition: position.partition }
}

async function loadTimes(
  tx: Tx,
  partition: number,
  eventIds: string[],
): Promise<{ newest: number | undefined; events: Map<string, number> }> {
  const { rows } = await tx.query<{ id: string | null; at: number }>({
    name: 'load-webhook-event-times',
    text: `select null as id, newest_at::float8 as at from webhook_partition_times where log_partition = $1
      union all select event_id, created_at::float8 from webhook_events where event_id = any($2)`,
    values: [partition, eventIds],
  })
  const events = rows.flatMap(({ id, at }) => (id === null ? [] : [[id, at] as const]))
  return { newest: rows.find(({ id }) => id === null)?.at, events: new Map(events) }
}

type LoadedDelivery = StoredDelivery & {
  changes: string[] | null
  tried: number[]
  arrived: number[]
}

async function loadDeliveries(tx: Tx, ids: string[]): Promise<Map<string, DeliveryState>> {
  if (ids.length === 0) return new Map()
  const { rows } = await tx.query<LoadedDelivery>({
    name: 'load-webhook-deliveries',
    text: `select ${webhookDeliveries.select('d')},
        array(select attempt from webhook_attempts a where a.delivery_id = d.delivery_id) as tried,
        array(select attempt from webhook_attempts a where a.delivery_id = d.delivery_id and succeeded) as arrived
      from webhook_deliveries d where d.delivery_id = any($1)`,
    values: [ids],
  })
  return new Map(rows.map((row) => [row.id, deliveryState(row)]))
}

function deliveryState({ changes, tried, arrived, ...row }: LoadedDelivery): DeliveryState {
  const succeeded = new Map(tried.map((attempt) => [attempt, arrived.includes(attempt)]))
  return { row, tried: succeeded, changes: changes ?? [], made: [] }
}

async function saveDeliveries(tx: Tx, states: DeliveryState[]): Promise<void> {
  const rows = states.map(({ row, changes }) => ({ ...row, changes: changes.length === 0 ? null : changes }))
  await saveRows(tx, webhookDeliveries, rows)
  const attempts = states.flatMap(({ made }) => made)
  await saveRows(tx, webhookAttempts, attempts.map(attemptRow))
}

function attemptRow(data: WebhookDeliveryAttempted): RowOf<typeof webhookAttempts> {
  const { delivery_id, attempt, endpoint_id, outcome, attempted_at } = data
  return { delivery_id, attempt, endpoint_id, succeeded: outcome === 'succeeded', attempted_at }
}

export interface Pruned {
  partition: number
  /** Epoch milliseconds; what was created earlier goes. */
  before: number
}

/** After weeks of silence all of a partition is pruned at once. So many events at a time bound the memory. */
const chunk = 5000

/** Deletes the partition's events created before a time, their deliveries and attempts. */
export async function prune(tx: Tx, { partition, before }: Pruned): Promise<void> {
  for (let deleted = chunk; deleted === chunk; ) {
    const { rows } = await tx.query<{ event_id: string }>({
      name: 'prune-webhook-events',
      // The order makes Postgres walk the index from its old end, however many rows it believes to match.
      text: `delete from webhook_events where event_id = any(array(select event_id from webhook_events
        where log_partition = $1 and created_at < $2 order by created_at limit ${chunk})) returning event_id`,
      values: [partition, before],
    })
    deleted = rows.length
    if (deleted > 0)
      await pruneDeliveries(
        tx,
        rows.map((row) => row.event_id),
      )
  }
}

async function pruneDeliveries(tx: Tx, eventIds: string[]): Promise<void> {
  const { rows } = await tx.query<{ delivery_id: string }>({
    name: 'prune-webhook-deliveries',
    text: `delete from webhook_deliveries where event_id = any($1) returning delivery_id`,
    values: [eventIds],
  })
  if (rows.length === 0) return
  await tx.query({
    name: 'prune-webhook-attempts',
    text: `delete from webhook_attempts where delivery_id = any($1)`,
    values: [rows.map((row) => row.delivery_id)],
  })
}
