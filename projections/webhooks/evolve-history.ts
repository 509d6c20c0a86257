import { derivedHexId } from '../../infra/ids.ts'
import {
  type DeliveryChange,
  type DeliveryEvent,
  type DeliveryState,
  evolveDelivery,
  type RaisedEvent,
  raisedDelivery,
} from './evolve-delivery.ts'

/** How long events stay, in milliseconds, with their deliveries and attempts: 30 days. */
export const keptMs = 30 * 24 * 60 * 60 * 1000

/**
 * What a batch touches of one partition. An event is there until the partition holds one that is more than `keptMs`
 * newer, which the log alone decides: no clock, so that two rebuilds keep the same.
 */
export interface History {
  /** `created_at` of the newest event ever raised; -Infinity = none that matters to the batch. */
  newest: number
  /** `created_at` of the events that the batch raises, by id: of those stored, and then of those it adds. */
  events: Map<string, number>
  /** The events that the batch adds. Of these and the deliveries, some may be too old at its end: they have to go. */
  raised: Map<string, RaisedEvent>
  deliveries: Map<string, DeliveryState>
  /** The ids of the deliveries to be written. */
  changed: Set<string>
}

/** Takes the event into the history, which it changes. */
export function evolveHistory(history: History, event: DeliveryEvent): void {
  if (event.type === 'WebhookEventRaised') raise(history, event)
  else changeDelivery(history, event)
}

function changeDelivery(history: History, event: DeliveryChange): void {
  const { delivery_id } = event.data
  const state = history.deliveries.get(delivery_id)
  // Unknown: its event is pruned, or was never raised. Nothing is kept of it, so nothing is left to prune either.
  if (!state) return
  const next = evolveDelivery(state, event)
  if (next !== state) change(history, next)
}

/** Whether an event of the time, and all that belongs to it, has to go. */
export function isTooOld({ newest }: Pick<History, 'newest'>, createdAt: number): boolean {
  return createdAt < newest - keptMs
}

function raise(history: History, event: RaisedEvent): void {
  const { event_id, created_at, endpoint_ids } = event.data
  history.newest = Math.max(history.newest, created_at)
  const known = history.events.get(event_id)
  const isRepeat = known !== undefined && !isTooOld(history, known)
  if (isRepeat || isTooOld(history, created_at)) return
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
