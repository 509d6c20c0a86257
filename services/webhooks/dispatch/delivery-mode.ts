/*
 * States of a delivery in the process that leased it.
 *
 *   ┌─────┐ taken, and can be sent  ┌─────────┐ the request ended  ┌───────────┐
 *   │ due │ ──────────────────────▶ │ sending │ ─────────────────▶ │ recording │ ──▶ no longer in flight
 *   └─────┘                         └────┬────┘                    └───────────┘
 *    ▲  ▲ taken too late                 │
 *    │  └── requeued ◀───────────────────┘ the process stops
 *    └───── deferred until its lease expires: the read models are behind
 */
export type DeliveryMode =
  /**
   * The request is running and counts against the endpoint's limit. When the process stops, it aborts the request and
   * requeues the delivery, because the outcome is unknown.
   */
  | 'sending'
  /**
   * The request has ended and the outcome is being appended to the log. The delivery is never requeued, because the
   * append may have succeeded: it stays leased until the read model has the outcome or the lease expires.
   */
  | 'recording'

/** Next step for a delivery that was taken. */
export type TakenStep =
  /** The delivery is already in flight in this process: PostgreSQL crashed and lost its lease. */
  | 'ignore'
  /** The process is stopping, or was suspended so long that the lease may expire before the request ends. */
  | 'requeue'
  /** The event, endpoint or organization is not in the read models yet. Taken again when the lease expires. */
  | 'defer'
  | 'send'

export function nextStepFor(delivery: {
  /** undefined unless the delivery is in flight in this process. */
  mode: DeliveryMode | undefined
  isTooLate: boolean
  /** True if the event, endpoint and organization are in the read models. */
  isReadable: boolean
}): TakenStep {
  if (delivery.mode !== undefined) return 'ignore'
  if (delivery.isTooLate) return 'requeue'
  return delivery.isReadable ? 'send' : 'defer'
}
