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
/** Events that clients and deliveries cause, in large numbers: their records name no actor. */
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
  /** The trace that it belongs to, of what it follows from. */
  traceparent?: string | undefined
}

/** An event as its record's value has it. The cause is absent for what clients and deliveries cause. */
export type EventAndCause = DomainEvent & { cause?: Cause }

export type RecordedEvent = EventAndCause & {
  meta: EventMeta
  position: Position
  /** The event under the committed id of its schema and without encryption, which any codec without a registry reads. */
  value: Buffer
  /**
   * The session whose data key is gone, or was not looked up. What the record says about a person is null, and here
   * it has values that say nothing (empty texts and lists, false), so that handlers that only pass it on need no
   * case.
   */
  unreadable?: string
  /** Its session was erased. Only what others depend on is taken from it. */
  isErased?: true
}

type EventOf<E extends EventName> = { type: E; data: EventTypes[E] }

const subjects: { readonly [E in EventName]: (data: EventTypes[E]) => string | null } =
  dataKeySubjects

/** Returns the session, or Gate session, whose data key encrypts what the event says about a person. */
export const sessionOf = <E extends EventName>({ type, data }: EventOf<E>): string | undefined =>
  subjects[type](data) ?? undefined

export const keyOf = <E extends EventName>({ type, data }: EventOf<E>): string =>
  partitionKeys[type](data)
