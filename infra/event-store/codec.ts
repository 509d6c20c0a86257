import type avro from 'avsc'
import {
  type Actor,
  type Cause,
  type CausedName,
  dataKeySubjects,
  type Environment,
  type EventTypes,
  eventTopics,
  partitionKeys,
} from '../../schemas/events.ts'
import { unavailable } from '../errors/errors.ts'
import type { Random } from '../ids.ts'
import { type LogRecord, type NewRecord, type Position, placeName } from '../log/port.ts'
import { createLru } from '../lru.ts'
import type { DataKeys } from './data-keys.ts'
import {
  committedIds,
  committedSchemas,
  type EventName,
  type EventSchemas,
  factsSchema,
  idIn,
  lazy,
  type SchemaVersion,
} from './event-schemas.ts'
import type { EventSealer } from './sealed-event.ts'
import { encodeUnder, openedFormat, openedValue, prefixBytes, wireFormat } from './wire-format.ts'

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
  /** Absent for what clients and deliveries cause. */
  cause?: Cause
  meta: EventMeta
  position: Position
  /**
   * As it was recorded, under the committed id of its schema and without encryption. Any codec with committed ids reads
   * it, and nobody else.
   */
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

export type SchemaIds = Record<string, number>

interface Known {
  version: SchemaVersion
  reader: SchemaVersion
  resolver: () => avro.Resolver | undefined
  committedId: number
}

export class UnreadableRecord extends Error {}

export interface CodecOptions {
  /** Default: those that are committed. */
  schemas?: EventSchemas
  /** Without it nothing is encrypted, and what is encrypted stays unreadable. */
  sealing?: { keys: DataKeys; random: Random } | undefined
}

type DecodedEvent = DomainEvent & { cause?: Cause }

interface Decoded {
  event: DecodedEvent
  // What a `RecordedEvent` has as `value`, where that is not as it was recorded.
  opened?: () => Buffer
  unreadable?: string
}

interface Recent {
  record: LogRecord
  event: RecordedEvent
  // Under whose key it was encrypted.
  session: string | undefined
}

type Encrypt = (value: Buffer, eventId: string) => void

interface Sealed {
  sealer: EventSealer
  sealed: Buffer
  eventId: string
  // Under whose key.
  session: string | undefined
}

/**
 * Encodes and decodes events in the Confluent wire format: 0x00, schema id as 4 bytes big-endian, Avro body
 * (docs.confluent.io, "Wire format"). Values of any version resolve to the newest one. Without ids of a registry it
 * uses the committed ones.
 * What it says about a person is encrypted under the data key of its session, which has to be in memory.
 */
export function createCodec(registered?: SchemaIds, options: CodecOptions = {}) {
  const { schemas = committedSchemas, sealing } = options
  const recent = createLru<string, Recent>(mostRecent)
  // What this codec encrypted, by the encoded event: the embedded log hands over what was appended.
  const sealedHere = new WeakMap<Buffer, Buffer>()
  const byId = new Map<number, Known>()
  for (const version of schemas.versions) {
    const reader = schemas.newest.get(version.name)
    if (!reader) throw new Error(`schema ${version.key} has no newest version`)
    const resolver = lazy(() =>
      reader === version ? undefined : reader.type().createResolver(version.type()),
    )
    byId.set(idOf(version), { version, reader, resolver, committedId: version.id })
  }

  function idOf({ key, id }: Pick<SchemaVersion, 'key' | 'id'>): number {
    const known = registered ? registered[key] : id
    if (known === undefined) throw new Error(`schema ${key} has no id`)
    return known
  }

  // What is encrypted is bound to the event's id.
  function encode(event: DomainEvent, cause?: Cause, eventId = ''): Buffer {
    const { type } = event
    const version = schemas.written.get(type)
    if (!version) throw new Error(`unknown event type ${type}`)
    const { data, encrypt } = sealed(version, event)
    const value = encodeUnder(idOf(version), version.type(), cause ? { ...data, ...cause } : data)
    encrypt?.(value, eventId)
    return value
  }

  // As it is where nothing is encrypted. `encrypt` = into the room that the encoded data have for it.
  function sealed(version: SchemaVersion, event: DomainEvent): { data: object; encrypt?: Encrypt } {
    const sealer = sealing && version.sealer()
    const session = sealer && sessionOf(event)
    if (!sealing || !sealer || !session) return event
    const dataKey = sealing.keys.get(session)
    if (dataKey === undefined)
      throw unavailable(new Error(`the data key of ${session} was not looked up`))
    // Nothing more is recorded of an erased session.
    if (!dataKey) return { data: sealer.withoutPersonal(event.data) }
    const personal = sealer.personalOf(event.data)
    return {
      data: sealer.withRoom(event.data, personal),
      encrypt(value, eventId) {
        sealer.fill(value, personal, { dataKey, eventId, random: sealing.random })
        sealedHere.set(value, personal)
      },
    }
  }

  function schemaOf(value: Buffer, format: number): Known {
    if (value.length < prefixBytes || value[0] !== format)
      throw new UnreadableRecord('not in the Confluent wire format')
    const found = byId.get(value.readUInt32BE(1))
    if (!found) throw new UnreadableRecord(`unknown schema id ${value.readUInt32BE(1)}`)
    return found
  }

  function read(found: Known, value: Buffer, eventId: string): Decoded {
    const { version, reader, resolver, committedId } = found
    const body = value.subarray(prefixBytes)
    const sealer = version.sealer()
    if (!sealer) return { event: readBy(reader, reader.type().fromBuffer(body, resolver())) }
    const data = version.type().fromBuffer(body)
    const { sealed } = data
    const isSealed = Buffer.isBuffer(sealed)
    if (!isSealed && !sealer.isUnreadable(data)) return { event: inNewest(found, data) }
    const session = sessionOf(eventOf(version, data))
    const personal = isSealed ? personalIn(value, { sealer, sealed, eventId, session }) : undefined
    if (!isSealed || !personal) {
      sealer.close(data)
      return { event: inNewest(found, data), unreadable: session ?? '' }
    }
    sealer.restore(data, personal)
    return {
      event: inNewest(found, data),
      opened: () => openedValue(value, { sealed, personal, id: committedId }),
    }
  }

  // As read models store what was encrypted.
  function readOpened(value: Buffer): DecodedEvent {
    const found = schemaOf(value, openedFormat)
    const data = found.version.type().fromBuffer(value.subarray(prefixBytes))
    if (Buffer.isBuffer(data.sealed)) found.version.sealer()?.restore(data, data.sealed)
    return inNewest(found, data)
  }

  // undefined where the session's key is not there, another key encrypted it, or the event was changed.
  function personalIn(
    value: Buffer,
    { sealer, sealed, eventId, session }: Sealed,
  ): Buffer | undefined {
    const dataKey = session === undefined ? undefined : sealing?.keys.get(session)
    return dataKey
      ? (sealedHere.get(value) ?? sealer.open(value, sealed, { dataKey, eventId }))
      : undefined
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

  // Its session may have been erased since.
  const isOpen = ({ session }: Recent) =>
    session === undefined || Boolean(sealing?.keys.get(session))

  function recordOf(event: DomainEvent, meta: EventMeta, cause?: Cause): NewRecord {
    return {
      topic: eventTopics[event.type],
      key: keyOf(event),
      value: encode(event, cause, meta.eventId),
      headers: headersOf(event, meta),
    }
  }

  function readRecord(record: LogRecord): Recent {
    const { topic, partition, offset } = record
    const schema = schemaOf(record.value, wireFormat)
    const { event_type: type, event_id: eventId = '' } = record.headers
    if (schema.version.name !== type)
      throw new UnreadableRecord(`a ${type} under the schema of ${schema.version.name}`)
    const { event: decoded, opened, unreadable } = read(schema, record.value, eventId)
    const event: RecordedEvent = {
      ...decoded,
      meta: metaOf(record),
      position: { topic, partition, offset },
      get value() {
        return opened ? opened() : committed(record.value)
      },
      ...(unreadable !== undefined && { unreadable }),
    }
    return { record, event, session: opened && sessionOf(event) }
  }

  const isEncrypted = (type = '') => schemas.newest.get(type)?.sealer() !== undefined

  return {
    encode,
    /** The id that records carry of the schema `topic/Name.v1`. Throws where there is no such schema. */
    schemaId: (key: string): number => idOf({ key, id: idIn(committedIds, key) }),
    decode: (value: Buffer): DecodedEvent =>
      value[0] === openedFormat
        ? readOpened(value)
        : read(schemaOf(value, wireFormat), value, '').event,
    /** The flat row of a session, which is no event and not encrypted. */
    encodeFacts(row: object): Buffer {
      const version = factsSchema()
      return encodeUnder(idOf(version), version.type, row)
    },
    // Makes the data keys that are needed to write the events. undefined = they are in memory.
    prepare(events: readonly DomainEvent[]): Promise<void> | undefined {
      return sealing?.keys.ensure(
        events.flatMap((event) => {
          const sessionId = schemas.written.get(event.type)?.sealer() && sessionOf(event)
          return sessionId ?? []
        }),
      )
    },
    // Looks up the data keys of records whose key is the session under whose data key they may be encrypted: what was
    // recorded before there was encryption, or with it switched off, is not.
    async loadKeysOf(records: readonly LogRecord[]): Promise<void> {
      const encrypted = records.filter(({ headers }) => isEncrypted(headers.event_type))
      const sessions = encrypted.flatMap(({ key }) => (/^(sid|gate)_/.test(key) ? key : []))
      if (sealing && sessions.length > 0) await sealing.keys.find([...new Set(sessions)])
    },
    // Looks up the data keys of events that are unreadable without having been looked up. Returns whether it did.
    async findKeysOf(events: readonly RecordedEvent[]): Promise<boolean> {
      const unreadable = events.flatMap((event) => event.unreadable ?? [])
      const missing = unreadable.filter((session) => sealing?.keys.get(session) === undefined)
      if (!sealing || missing.length === 0) return false
      await sealing.keys.load([...new Set(missing)])
      return true
    },
    toRecord: (event: TrafficEvent, meta: EventMeta) => recordOf(event, meta),
    /** Traffic, too, where a command leads to it: its records have no place for the cause. */
    toCausedRecord: (event: DomainEvent, meta: EventMeta, cause: KnownCause) =>
      recordOf(event, meta, cause),
    /** The same object for the same record, which several consumers of a process read. */
    fromRecord(record: LogRecord): RecordedEvent {
      const place = `${placeName(record)}/${record.offset}`
      const known = recent.get(place)
      if (known && isSame(known.record, record) && isOpen(known)) return known.event
      const read = readRecord(record)
      // Its key may be there the next time.
      if (read.event.unreadable === undefined) recent.set(place, read)
      return read.event
    },
    /** For who reads alone: remembering what nobody asks for took a sixth of the processor time of a rebuild. */
    fromRecordOnce: (record: LogRecord): RecordedEvent => readRecord(record).event,
  }
}

// Events of some kilobytes, for the slowest read model's gathering at full load.
const mostRecent = 1000

// A codec may read several logs, each with a record at the place.
function isSame(one: LogRecord, other: LogRecord): boolean {
  return (
    one === other ||
    (one.headers.event_id === other.headers.event_id && one.value.equals(other.value))
  )
}

function eventOf(version: SchemaVersion, data: unknown): DomainEvent {
  return { type: version.name, data } as DomainEvent
}

function inNewest(
  { version, reader, resolver }: Known,
  data: Record<string, unknown>,
): DecodedEvent {
  withoutSealed(data)
  return readBy(
    reader,
    reader === version ? data : reader.type().fromBuffer(version.type().toBuffer(data), resolver()),
  )
}

// The reader's version has all fields.
function readBy(reader: SchemaVersion, found: Record<string, unknown>): DecodedEvent {
  if (!reader.isCaused) return eventOf(reader, withoutSealed(found))
  const { actor, request_id, ...data } = withoutSealed(found)
  return { ...eventOf(reader, data), cause: { actor, request_id } as Cause }
}

// Events do not tell what is encrypted in them.
function withoutSealed(data: Record<string, unknown>): Record<string, unknown> {
  if ('sealed' in data) data.sealed = undefined
  return data
}

type EventOf<E extends EventName> = { type: E; data: EventTypes[E] }

const subjects: { readonly [E in EventName]: (data: EventTypes[E]) => string | null } =
  dataKeySubjects

/** Returns the session, or Gate session, whose data key encrypts what the event says about a person. */
export const sessionOf = <E extends EventName>({ type, data }: EventOf<E>): string | undefined =>
  subjects[type](data) ?? undefined

export const keyOf = <E extends EventName>({ type, data }: EventOf<E>): string =>
  partitionKeys[type](data)

export type EventCodec = ReturnType<typeof createCodec>

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
  if (!event_id || !event_time)
    throw new UnreadableRecord('headers event_id and event_time are missing')
  return {
    eventId: event_id,
    time: Number(event_time),
    organizationId: organization_id ?? null,
    environment: environment === 'live' || environment === 'test' ? environment : null,
    ...(traceparent ? { traceparent } : {}),
  }
}
