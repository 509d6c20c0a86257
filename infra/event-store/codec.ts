import avro from 'avsc'
import { LRUCache } from 'lru-cache'
import {
  type Actor,
  type Cause,
  type CausedName,
  type Environment,
  type EventTypes,
  eventTopics,
} from '../../schemas/events.ts'
import { readSchemaFiles } from '../../schemas/generate.ts'
import committedIds from '../../schemas/ids.json' with { type: 'json' }
import type { LogRecord, NewRecord, Position } from '../log/port.ts'

export type EventName = keyof EventTypes
export type DomainEvent = { [K in EventName]: { type: K; data: EventTypes[K] } }[EventName]
/** What clients and deliveries cause by themselves, in numbers: records of it do not name an actor. */
export type TrafficEvent = Exclude<DomainEvent, { type: CausedName }>

export interface KnownCause extends Cause {
  actor: Actor
}

/** What every record carries in its headers. `time` is epoch milliseconds. */
export interface EventMeta {
  eventId: string
  time: number
  organizationId: string | null
  environment: Environment | null
  /** The trace that it belongs to, of what it follows from. */
  traceparent?: string | undefined
}

export type RecordedEvent = DomainEvent & {
  /** Absent for what clients and deliveries cause. The actor is null where it was recorded before actors were. */
  cause?: Cause
  meta: EventMeta
  position: Position
  /** As it was recorded, under the committed id of its schema: any codec with committed ids reads it. */
  value: Buffer
}

interface Codec {
  name: EventName
  key: string
  /** Made when first asked for: a command that needs few of them does not wait for all. */
  type: () => avro.Type
  isCaused: boolean
}

const files = readSchemaFiles()
const codecs: Codec[] = files.map((file) => ({
  name: eventName(file.name),
  key: file.key,
  type: lazy(() => avro.Type.forSchema(file.schema as unknown as avro.Schema)),
  isCaused: file.schema.fields.some(({ name }) => name === 'actor'),
}))
const newest = newestOf(codecs)

function newestOf(some: Codec[]): Map<EventName, Codec> {
  return new Map(some.map((codec) => [codec.name, codec]))
}

function lazy<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

function eventName(name: string): EventName {
  if (name in eventTopics) return name as EventName
  throw new Error(`no generated type for event ${name}: run npm run schemas`)
}

export type SchemaIds = Record<string, number>

interface Known {
  codec: Codec
  reader: Codec
  resolver: () => avro.Resolver | undefined
  committedId: number
}

function idOf(ids: SchemaIds, { key }: Codec): number {
  const id = ids[key]
  if (id === undefined) throw new Error(`schema ${key} has no id`)
  return id
}

export class UnreadableRecord extends Error {}

/**
 * Encodes and decodes events in the Confluent wire format: 0x00, schema id as 4 bytes big-endian, Avro body
 * (docs.confluent.io, "Wire format"). Values written by any earlier version resolve to the newest one.
 * `writtenUpTo` is the highest committed id that is written where an event has a version up to there, so that programs
 * of before can read it. Fields that were added later are left out.
 */
export function createCodec(ids: SchemaIds = committedIds, { writtenUpTo = Number.POSITIVE_INFINITY } = {}) {
  const earlier = newestOf(codecs.filter((codec) => idOf(committedIds, codec) <= writtenUpTo))
  const written = new Map([...newest, ...earlier])
  const recent = new LRUCache<LogRecord, RecordedEvent>({ max: mostRecent })
  const byId = new Map<number, Known>()
  for (const codec of codecs) {
    const id = idOf(ids, codec)
    const reader = newest.get(codec.name)
    if (!reader) throw new Error(`schema ${codec.key} has no newest version`)
    const resolver = lazy(() => (reader === codec ? undefined : reader.type().createResolver(codec.type())))
    byId.set(id, { codec, reader, resolver, committedId: idOf(committedIds, codec) })
  }

  function encode({ type, data }: DomainEvent, cause?: Cause): Buffer {
    const codec = written.get(type)
    const id = codec && ids[codec.key]
    if (!codec || id === undefined) throw new Error(`unknown event type ${type}`)
    const value = encodeBehindPrefix(codec.type(), cause ? { ...data, ...cause } : data)
    value.writeUInt8(0, 0)
    value.writeUInt32BE(id, 1)
    return value
  }

  function decode(value: Buffer): DomainEvent & { cause?: Cause } {
    if (value.length < prefixBytes || value[0] !== 0)
      throw new UnreadableRecord('not in the Confluent wire format')
    const found = byId.get(value.readUInt32BE(1))
    if (!found) throw new UnreadableRecord(`unknown schema id ${value.readUInt32BE(1)}`)
    const read = found.reader.type().fromBuffer(value.subarray(prefixBytes), found.resolver())
    const { name: type } = found.codec
    if (!found.reader.isCaused) return { type, data: read } as DomainEvent
    const { actor, request_id, ...data } = read
    return { type, data, cause: { actor, request_id } } as DomainEvent & { cause: Cause }
  }

  // A registry gives ids of its own.
  function committed(value: Buffer): Buffer {
    const id = value.readUInt32BE(1)
    const committedId = byId.get(id)?.committedId
    if (committedId === undefined || committedId === id) return value
    const copy = Buffer.from(value)
    copy.writeUInt32BE(committedId, 1)
    return copy
  }

  function recordOf(event: DomainEvent, meta: EventMeta, cause?: Cause): NewRecord {
    return {
      topic: eventTopics[event.type],
      key: keyOf(event),
      value: encode(event, cause),
      headers: headersOf(event, meta),
    }
  }

  return {
    encode,
    decode,
    /** Whether a program that knows no id above `writtenUpTo` can read the events of this type. */
    mayWrite: (type: EventName): boolean => earlier.has(type),
    toRecord: (event: TrafficEvent, meta: EventMeta) => recordOf(event, meta),
    /** Traffic, too, where a command leads to it: its records have no place for the cause. */
    toCausedRecord: (event: DomainEvent, meta: EventMeta, cause: KnownCause) => recordOf(event, meta, cause),
    /** The same object for the same record: several consumers of a process read one that was just appended. */
    fromRecord(record: LogRecord): RecordedEvent {
      const known = recent.get(record)
      if (known) return known
      const { topic, partition, offset } = record
      const position = { topic, partition, offset }
      const event = {
        ...decode(record.value),
        meta: metaOf(record),
        position,
        value: committed(record.value),
      }
      recent.set(record, event)
      return event
    },
  }
}

// Events of some kilobytes, for the slowest read model's gathering at full load.
const mostRecent = 1000

const prefixBytes = 5
const scratch = Buffer.allocUnsafeSlow(64 * 1024)

function encodeBehindPrefix(type: avro.Type, data: unknown): Buffer {
  const end = type.encode(data, scratch, prefixBytes)
  if (end >= 0) return Buffer.from(scratch.subarray(0, end))
  // A negative end says by how many bytes it was too small.
  const value = Buffer.allocUnsafe(scratch.length - end)
  type.encode(data, value, prefixBytes)
  return value
}

export type EventCodec = ReturnType<typeof createCodec>

export function keyOf({ data }: DomainEvent): string {
  if ('session_id' in data) return data.session_id
  if ('skipped_topic' in data) return `${data.skipped_topic}/${data.skipped_partition}`
  if ('check_id' in data) return data.check_id
  // Of Gate: a signup with the agent token that it issued, a login, or a service.
  if ('gate_session_id' in data) return data.gate_session_id
  if ('service_id' in data) return data.service_id
  // Only webhooks: an event and all that becomes of its deliveries. Endpoints are their organization's.
  if ('event_id' in data) return data.event_id
  return data.organization_id
}

function headersOf(event: DomainEvent, meta: EventMeta): Record<string, string> {
  const headers: Record<string, string> = {
    event_id: meta.eventId,
    event_type: event.type,
    event_time: String(meta.time),
  }
  if (meta.organizationId) headers.organization_id = meta.organizationId
  if (meta.environment) headers.environment = meta.environment
  if (meta.traceparent) headers.traceparent = meta.traceparent
  return headers
}

function metaOf({ headers }: LogRecord): EventMeta {
  const { event_id, event_time, organization_id, environment, traceparent } = headers
  if (!event_id || !event_time) throw new UnreadableRecord('headers event_id and event_time are missing')
  return {
    eventId: event_id,
    time: Number(event_time),
    organizationId: organization_id ?? null,
    environment: environment === 'live' || environment === 'test' ? environment : null,
    ...(traceparent ? { traceparent } : {}),
  }
}
