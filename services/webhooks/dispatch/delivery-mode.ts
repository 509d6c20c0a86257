/*
 * A delivery in the process that takes it.
 *
 *   ┌─────┐ taken, and can be sent  ┌─────────┐ the request ended  ┌───────────┐
 *   │ due │ ──────────────────────▶ │ sending │ ─────────────────▶ │ recording │ ──▶ not in flight any more
 *   └─────┘                         └────┬────┘                    └───────────┘
 *    ▲  ▲ taken too late                 │
 *    │  └── put back ◀───────────────────┘ the process stops
 *    └───── hidden until its lease expires: the read models are behind
 */
export type DeliveryMode =
  /**
   * Its request runs and counts against its endpoint's limit. Where the process stops, it is put back after the request
   * was cut off, since nothing is known of it.
   */
  | 'sending'
  /**
   * Its request has ended, and the record of that is on its way to the log. It is never put back, because it may have
   * been recorded already: it stays hidden until the record has come, or its lease expires.
   */
  | 'recording'

/** Next step for a delivery that was taken. */
export type TakenStep =
  /** Nothing. It is in flight here: a database that lost its last commits gave it once more. */
  | 'ignore'
  /** The process stops, or was suspended for so long that another one may have made the delivery since. */
  | 'putBack'
  /** The read models lack its event, endpoint or organization. It is taken again when its lease expires. */
  | 'hide'
  | 'send'

export function stepOf(taken: {
  mode: DeliveryMode | undefined
  isTooLate: boolean
  /** Its event, endpoint and organization are in the read models. */
  isReadable: boolean
}): TakenStep {
  if (taken.mode !== undefined) return 'ignore'
  if (taken.isTooLate) return 'putBack'
  return taken.isReadable ? 'send' : 'hide'
}
