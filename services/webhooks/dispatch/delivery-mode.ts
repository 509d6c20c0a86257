/*
 * States of a delivery in the process that leased it.
 *
 *   ┌─────┐ taken, and can be sent  ┌─────────┐ the request ended  ┌───────────┐
 *   │ due │ ──────────────────────▶ │ sending │ ─────────────────▶ │ recording │ ──▶ not in flight any more
 *   └─────┘                         └────┬────┘                    └───────────┘
 *    ▲  ▲ taken too late                 │
 *    │  └── requeued ◀───────────────────┘ the process stops
 *    └───── hidden until its lease expires: the read models are behind
 */
export type DeliveryMode =
  /**
   * Its request is running and counts against its endpoint's limit. When the process stops, the request is aborted and
   * the delivery requeued, because its outcome is unknown.
   */
  | 'sending'
  /**
   * Its request has ended and the outcome is being appended to the log. It is never requeued, because the append may
   * have succeeded: it stays hidden until the read model shows the outcome or the lease expires.
   */
  | 'recording'

/** Next step for a delivery that was taken. */
export type TakenStep =
  /** Already in flight here: a crashed database lost the lease and handed the delivery out again. */
  | 'ignore'
  /** The process is stopping, or was suspended so long that the lease may expire before the request ends. */
  | 'requeue'
  /** Its event, endpoint or organization is not in the read models. It is taken again when its lease expires. */
  | 'hide'
  | 'send'

export function stepOf(delivery: {
  mode: DeliveryMode | undefined
  isTooLate: boolean
  /** Its event, endpoint and organization are in the read models. */
  isReadable: boolean
}): TakenStep {
  if (delivery.mode !== undefined) return 'ignore'
  if (delivery.isTooLate) return 'requeue'
  return delivery.isReadable ? 'send' : 'hide'
}
