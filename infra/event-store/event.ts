import {
  type Actor,
  type Cause,
  type CausedName,
  dataKeySubjects,
  type Environment,
  type EventTypes,
  partitionKeys,
} from '../../schemas/events.ts'
import type { Position } from '../log/port.ts'

export type EventName = keyof EventTypes
export type DomainEvent = { [E in EventName]: { type: E; data: EventTypes[E] } }[EventName]
/** High-volume events of clients and deliveries. Their records name no actor. */
export type TrafficEvent = Exclude<DomainEvent, { type: CausedName }>

export interface KnownCause extends Cause {
  actor: Actor
}

/** Headers of a record. `time` is epoch milliseconds. */
export interface EventMeta {
  eventId: string
  time: number
  organizationId: string | null
  environment: Environment | null
  /** The trace of the request or event that caused it (W3C trace context). */
  traceparent?: string | undefined
}

/** An event as a record's value contains it. Traffic events have no cause. */
export type EventAndCause = DomainEvent & { cause?: Cause }

export type RecordedEvent = EventAndCause & {
  meta: EventMeta
  position: Position
  /** The event, decrypted and with the committed schema id, so any codec without a registry can decode it. */
  value: Buffer
  /**
   * The session whose data key is gone or was not looked up. Personal fields, null on the log, are then blank (empty
   * strings and lists, false), so handlers that only pass them on need no special case.
   */
  unreadable?: string
  /** Its session was erased. Handlers use only what other rows depend on. */
  isErased?: true
}

type EventOf<E extends EventName> = { type: E; data: EventTypes[E] }

const subjects: { readonly [E in EventName]: (data: EventTypes[E]) => string | null } =
  dataKeySubjects

/** Returns the session or Gate session whose data key encrypts the event's personal fields. */
export const sessionOf = <E extends EventName>({ type, data }: EventOf<E>): string | undefined =>
  subjects[type](data) ?? undefined

export const keyOf = <E extends EventName>({ type, data }: EventOf<E>): string =>
  partitionKeys[type](data)
