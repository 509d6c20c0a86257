import type { Tx } from '../../infra/postgres/pool.ts'
import { loadDeliveries, saveDeliveries } from './delivery-records.ts'
import { insertEvents, loadTimes, saveNewest } from './event-records.ts'
import type { DeliveryEvent } from './evolve-delivery.ts'
import { evolveHistory, type History, isTooOld, keptMs } from './evolve-history.ts'
import { prune } from './prune.ts'

/**
 * Loads what the events touch, evolves it event by event, writes it back: a handful of statements for a batch of any
 * size, and the same rows wherever the log is cut into batches.
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

/** Before rows are written: one of them may be of an event id that is pruned here. */
async function moveOn(tx: Tx, partition: number, newest: number): Promise<void> {
  await prune(tx, { partition, before: newest - keptMs })
  await saveNewest(tx, partition, newest)
}

async function save(tx: Tx, history: History): Promise<void> {
  const isKept = ({ created_at }: { created_at: number }) => !isTooOld(history, created_at)
  const { raised, deliveries, changed } = history
  await insertEvents(
    tx,
    [...raised.values()].filter(({ data }) => isKept(data)),
  )
  const states = [...changed].flatMap((id) => deliveries.get(id) ?? [])
  await saveDeliveries(
    tx,
    states.filter(({ row }) => isKept(row)),
  )
}
