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
  /** Whether each reported attempt, by its number, has succeeded. */
  tried: ReadonlyMap<number, boolean>
  /** Event ids of the applied skips and redeliveries. */
  changes: readonly string[]
  /** Attempts to store, at most one for a number. */
  made: readonly WebhookDeliveryAttempted[]
}

export function raisedDelivery(
  { data }: RaisedEvent,
  id: string,
  endpoint_id: string,
): DeliveryState {
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
  return { row, tried: new Map(), changes: [], made: [] }
}

/**
 * The delivery after the event; the same object when that changes nothing. Senders report at least once, and out of
 * order. So these rules hold:
 * - The first report of an attempt counts, and after it the first success: two workers can have sent the same attempt.
 * - Of a skip or redelivery, the first event of its id counts.
 * - Success is final, whatever the delivery was. Only a redelivery makes it pending again.
 * - A failure decides what comes next only while the delivery is pending and no later attempt is known. Otherwise it is
 *   only counted.
 * - Only a pending delivery can be skipped, and only an ended one redelivered.
 */
export function evolveDelivery(state: DeliveryState, event: DeliveryChange): DeliveryState {
  switch (event.type) {
    case 'WebhookDeliveryAttempted':
      return attempted(state, event.data)
    case 'WebhookDeliverySkipped':
      return once(state, event.meta.eventId, (row) => skipped(row, event.data))
    case 'WebhookRedeliveryRequested':
      return once(state, event.meta.eventId, (row) => redelivered(row, event.data))
    default:
      return event satisfies never
  }
}

function attempted(state: DeliveryState, data: WebhookDeliveryAttempted): DeliveryState {
  const { attempt, outcome } = data
  const succeeded = outcome === 'succeeded'
  const before = state.tried.get(attempt)
  if (before === true || before === succeeded) return state
  return {
    ...state,
    row: afterAttempt(state.row, data, { isNew: before === undefined }),
    tried: new Map(state.tried).set(attempt, succeeded),
    made: [...state.made.filter((made) => made.attempt !== attempt), data],
  }
}

function afterAttempt(
  row: StoredDelivery,
  data: WebhookDeliveryAttempted,
  { isNew }: { isNew: boolean },
): StoredDelivery {
  const attempts = Math.max(row.attempts, data.attempt)
  const decides =
    data.outcome === 'succeeded'
      ? row.status !== 'succeeded'
      : row.status === 'pending' && data.attempt > row.attempts
  if (!decides) return { ...row, attempts }
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

function once(
  state: DeliveryState,
  eventId: string,
  change: (row: StoredDelivery) => StoredDelivery,
): DeliveryState {
  if (state.changes.includes(eventId)) return state
  return { ...state, row: change(state.row), changes: [...state.changes, eventId] }
}

function skipped(
  row: StoredDelivery,
  { reason, skipped_at }: WebhookDeliverySkipped,
): StoredDelivery {
  if (row.status !== 'pending') return row
  return { ...row, status: 'skipped', next_attempt_at: null, error: reason, updated_at: skipped_at }
}

function redelivered(
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
 * What a batch touches of one partition. An event stays until the partition has one that is more than
 * `webhookRetentionMs` newer. Only the log decides it, and no clock, so that two rebuilds have the same rows.
 */
export interface History {
  /** When the newest event was created (epoch milliseconds); -Infinity = none that matters to the batch. */
  newest: number
  /** `created_at` by id, of the events that are stored or added. */
  events: Map<string, number>
  /** Events to insert. Those that are too old at the end of the batch are not, nor are their deliveries. */
  raised: Map<string, RaisedEvent>
  deliveries: Map<string, DeliveryState>
  changed: Set<string>
}

export function evolveHistory(history: History, event: DeliveryEvent): void {
  if (event.type === 'WebhookEventRaised') raise(history, event)
  else changeDelivery(history, event)
}

function changeDelivery(history: History, event: DeliveryChange): void {
  const { delivery_id } = event.data
  const state = history.deliveries.get(delivery_id)
  // Its event is pruned, or was never raised. Nothing is stored of it, so that nothing is left to prune either.
  if (!state) return
  const next = evolveDelivery(state, event)
  if (next !== state) change(history, next)
}

export function isTooOld({ newest }: Pick<History, 'newest'>, createdAt: number): boolean {
  return createdAt < newest - webhookRetentionMs
}

function raise(history: History, event: RaisedEvent): void {
  const { event_id, created_at, endpoint_ids } = event.data
  history.newest = Math.max(history.newest, created_at)
  const known = history.events.get(event_id)
  const isRepeat = known !== undefined && !isTooOld(history, known)
  if (isRepeat || isTooOld(history, created_at) || event.isErased) return
  history.events.set(event_id, created_at)
  history.raised.set(event_id, event)
  for (const endpointId of endpoint_ids) {
    change(history, raisedDelivery(event, derivedHexId('wdlv', event_id, endpointId), endpointId))
  }
}

function change(history: History, state: DeliveryState): void {
  history.deliveries.set(state.row.id, state)
  history.changed.add(state.row.id)
}
