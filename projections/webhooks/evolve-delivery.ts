import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { derivedHexId } from '../../infra/ids.ts'
import type {
  WebhookDeliveryAttempted,
  WebhookDeliverySkipped,
  WebhookRedeliveryRequested,
} from '../../schemas/events.ts'
import { type StoredDelivery, webhookRetentionMs } from './tables.ts'

const deliveryEventTypes = [
  'WebhookEventRaised',
  'WebhookDeliveryAttempted',
  'WebhookDeliverySkipped',
  'WebhookRedeliveryRequested',
] as const
export type DeliveryEvent = Extract<RecordedEvent, { type: (typeof deliveryEventTypes)[number] }>
export type RaisedEvent = Extract<DeliveryEvent, { type: 'WebhookEventRaised' }>
export type DeliveryChange = Exclude<DeliveryEvent, RaisedEvent>

export function isDeliveryEvent(event: RecordedEvent): event is DeliveryEvent {
  return deliveryEventTypes.some((type) => type === event.type)
}

export interface DeliveryState {
  row: StoredDelivery
  /** Recorded attempts by number; true if successful. */
  outcomes: ReadonlyMap<number, boolean>
  /** Event ids of the skips and redeliveries that were applied. */
  changes: readonly string[]
  /** Attempts to store, at most one per number. */
  newAttempts: readonly WebhookDeliveryAttempted[]
}

export function newDelivery({ data }: RaisedEvent, id: string, endpoint_id: string): DeliveryState {
  const { event_id, organization_id, environment, type: event_type, created_at, route } = data
  const row: StoredDelivery = {
    id,
    event_id,
    endpoint_id,
    organization_id,
    environment,
    event_type,
    status: 'pending',
    attempts: 0,
    attempts_in_round: 0,
    next_attempt_at: route === 'direct' ? null : created_at,
    response_status: null,
    response_body: null,
    error: null,
    created_at,
    updated_at: created_at,
  }
  return { row, outcomes: new Map(), changes: [], newAttempts: [] }
}

/**
 * Returns the delivery after the event; the same object if nothing changes. Attempts can be recorded more than once and
 * out of order, because two processes may send the same one:
 * - The first record of an attempt number counts, but a success replaces a failure.
 * - Skips and redeliveries are deduplicated by event id.
 * - Success overrides every other status. Only a redelivery makes the delivery pending again.
 * - A failure sets the status only if the delivery is pending and has no later attempt. Otherwise it is only counted.
 * - Only a pending delivery can be skipped, and only a finished one redelivered.
 */
export function evolveDelivery(state: DeliveryState, event: DeliveryChange): DeliveryState {
  switch (event.type) {
    case 'WebhookDeliveryAttempted':
      return applyAttempt(state, event.data)
    case 'WebhookDeliverySkipped':
      return applyOnce(state, event.meta.eventId, (row) => skip(row, event.data))
    case 'WebhookRedeliveryRequested':
      return applyOnce(state, event.meta.eventId, (row) => redeliver(row, event.data))
    default:
      return event satisfies never
  }
}

function applyAttempt(state: DeliveryState, data: WebhookDeliveryAttempted): DeliveryState {
  const { attempt, outcome } = data
  const succeeded = outcome === 'succeeded'
  const previous = state.outcomes.get(attempt)
  if (previous === true || previous === succeeded) return state
  return {
    ...state,
    row: afterAttempt(state.row, data, { isNew: previous === undefined }),
    outcomes: new Map(state.outcomes).set(attempt, succeeded),
    newAttempts: [...state.newAttempts.filter((other) => other.attempt !== attempt), data],
  }
}

function afterAttempt(
  row: StoredDelivery,
  data: WebhookDeliveryAttempted,
  { isNew }: { isNew: boolean },
): StoredDelivery {
  const attempts = Math.max(row.attempts, data.attempt)
  const setsStatus =
    data.outcome === 'succeeded'
      ? row.status !== 'succeeded'
      : row.status === 'pending' && data.attempt > row.attempts
  if (!setsStatus) return { ...row, attempts }
  const { outcome, response_status, response_body, error } = data
  return {
    ...row,
    status: outcome === 'retrying' ? 'pending' : outcome,
    attempts,
    attempts_in_round: row.attempts_in_round + (isNew ? 1 : 0),
    next_attempt_at: outcome === 'retrying' ? data.next_attempt_at : null,
    response_status,
    response_body,
    error,
    updated_at: data.attempted_at + data.duration_ms,
  }
}

function applyOnce(
  state: DeliveryState,
  eventId: string,
  change: (row: StoredDelivery) => StoredDelivery,
): DeliveryState {
  if (state.changes.includes(eventId)) return state
  return { ...state, row: change(state.row), changes: [...state.changes, eventId] }
}

function skip(row: StoredDelivery, { reason, skipped_at }: WebhookDeliverySkipped): StoredDelivery {
  if (row.status !== 'pending') return row
  return { ...row, status: 'skipped', next_attempt_at: null, error: reason, updated_at: skipped_at }
}

function redeliver(
  row: StoredDelivery,
  { requested_at }: WebhookRedeliveryRequested,
): StoredDelivery {
  if (row.status === 'pending') return row
  return {
    ...row,
    status: 'pending',
    attempts_in_round: 0,
    next_attempt_at: requested_at,
    updated_at: requested_at,
  }
}

/**
 * Rows of one partition that a batch reads and changes. An event expires once the partition has one more than
 * `webhookRetentionMs` newer. No clock is involved, so that every rebuild results in the same rows.
 */
export interface PartitionState {
  /** Creation time of the newest event, in epoch milliseconds; -Infinity if the batch needs none. */
  newest: number
  /** `created_at` of stored and raised events, by id. */
  events: Map<string, number>
  /** Events to insert, unless they expire within the batch. */
  raised: Map<string, RaisedEvent>
  deliveries: Map<string, DeliveryState>
  /** Ids of the deliveries to save. */
  changed: Set<string>
}

export function evolvePartition(partition: PartitionState, event: DeliveryEvent): void {
  if (event.type === 'WebhookEventRaised') addEvent(partition, event)
  else changeDelivery(partition, event)
}

function changeDelivery(partition: PartitionState, event: DeliveryChange): void {
  const { delivery_id } = event.data
  const state = partition.deliveries.get(delivery_id)
  // The event was pruned or never raised. A delivery without an event would never be pruned.
  if (!state) return
  const next = evolveDelivery(state, event)
  if (next !== state) setDelivery(partition, next)
}

export function isExpired({ newest }: Pick<PartitionState, 'newest'>, createdAt: number): boolean {
  return createdAt < newest - webhookRetentionMs
}

function addEvent(partition: PartitionState, event: RaisedEvent): void {
  const { event_id, created_at, endpoint_ids } = event.data
  partition.newest = Math.max(partition.newest, created_at)
  const createdBefore = partition.events.get(event_id)
  const isRepeat = createdBefore !== undefined && !isExpired(partition, createdBefore)
  if (isRepeat || isExpired(partition, created_at) || event.isErased) return
  partition.events.set(event_id, created_at)
  partition.raised.set(event_id, event)
  for (const endpointId of endpoint_ids) {
    const id = derivedHexId('wdlv', event_id, endpointId)
    setDelivery(partition, newDelivery(event, id, endpointId))
  }
}

function setDelivery(partition: PartitionState, state: DeliveryState): void {
  partition.deliveries.set(state.row.id, state)
  partition.changed.add(state.row.id)
}
