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
/** High-volume events of clients and webhook deliveries, whose records name no actor. */
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
  /** W3C trace context of the request or event that caused the event. */
  traceparent?: string | undefined
}

/** An event as encoded in a record's value. Traffic events have no cause. */
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
  /** Set if its session was erased. Handlers then change only rows that others depend on. */
  isErased?: true
}

type EventOf<E extends EventName> = { type: E; data: EventTypes[E] }

const subjects: { readonly [E in EventName]: (data: EventTypes[E]) => string | null } =
  dataKeySubjects

/** Returns the session or Gate session whose data key encrypts the event's personal fields. */
export const sessionOf = <E extends EventName>({ type, data }: EventOf<E>): string | undefined =>
  subjects[type](data) ?? undefined

export const partitionKeyOf = <E extends EventName>({ type, data }: EventOf<E>): string =>
  partitionKeys[type](data)
