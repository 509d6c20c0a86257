import type { Resolver } from 'avsc'
import type { Cause } from '../../schemas/events.ts'
import { type LogRecord, placeName } from '../log/port.ts'
import { createLru } from '../lru.ts'
import type { CodecParts } from './encode.ts'
import {
  type DomainEvent,
  type EventAndCause,
  type EventMeta,
  type RecordedEvent,
  sessionOf,
} from './event.ts'
import { type EventSchemas, idIn, lazy, type SchemaVersion } from './event-schemas.ts'
import type { EventFields } from './seal.ts'
import { openedFormat, openedValue, prefixBytes, underId, wireFormat } from './wire-format.ts'

export class UnreadableRecord extends Error {}

/** A version of an event that records may have, and the newest, in which it is given. */
interface WrittenSchema extends SchemaVersion {
  newest: SchemaVersion
  resolver: (() => Resolver) | undefined
}

interface DecodedValue {
  event: EventAndCause
  /** The personal fields, decrypted, and the session under whose key they are. */
  opened?: { session: string; personal: Buffer; sealedBytes: number }
  unreadable?: string
}

interface CachedEvent {
  record: LogRecord
  event: RecordedEvent
  /** The session under whose key it is encrypted. */
  session: string | undefined
}

// Events of some kilobytes, for the slowest read model's gathering at full load.
const maxCached = 1000

export function createDecoder(parts: CodecParts) {
  const { schemas, ids, sealing } = parts
  const byId = new Map(
    schemas.versions.map((version) => [idIn(ids, version.key), withNewest(version, schemas)]),
  )
  const newestId = Math.max(...byId.keys())
  const cache = createLru<string, CachedEvent>(maxCached)

  function schemaOf(value: Buffer, format: number): WrittenSchema {
    if (value.length < prefixBytes || value[0] !== format)
      throw new UnreadableRecord('not in the Confluent wire format')
    const id = value.readUInt32BE(1)
    // Ids are given in order and never again, so the missing ones are of schemas that no release had.
    const isRetired = ids === schemas.ids && id < newestId
    return byId.get(id) ?? refuseSchema(id, isRetired)
  }

  function readRecord(record: LogRecord): CachedEvent {
    const { topic, partition, offset, headers, value } = record
    const schema = schemaOf(value, wireFormat)
    const { event_type: type, event_id: eventId = '' } = headers
    if (schema.name !== type)
      throw new UnreadableRecord(`a ${type} under the schema of ${schema.name}`)
    const { event, opened, unreadable } = decodeValue(schema, value, { eventId, parts })
    const recorded: RecordedEvent = {
      ...event,
      meta: metaOf(record),
      position: { topic, partition, offset },
      get value() {
        return opened ? openedValue(value, { ...opened, id: schema.id }) : underId(schema.id, value)
      },
      ...(unreadable !== undefined && { unreadable }),
    }
    return { record, event: recorded, session: opened?.session }
  }

  const hasKey = (session: string) => Boolean(sealing?.keys.get(session))

  return {
    /** Decodes an event without its record, also as read models store what was encrypted. */
    decode(value: Buffer): EventAndCause {
      const schema = schemaOf(value, value[0] === openedFormat ? openedFormat : wireFormat)
      return decodeValue(schema, value, { eventId: '', parts }).event
    },
    /** Returns the same object for the same record, which several consumers of a process read. */
    fromRecord(record: LogRecord): RecordedEvent {
      const place = `${placeName(record)}/${record.offset}`
      const cached = cache.get(place)
      // Its session may have been erased since.
      if (cached && isSame(cached.record, record) && (!cached.session || hasKey(cached.session)))
        return cached.event
      const read = readRecord(record)
      // Its key may be there the next time.
      if (read.event.unreadable === undefined) cache.set(place, read)
      return read.event
    },
    /** For a single reader: remembering what nobody asks for took a sixth of the processor time of a rebuild. */
    fromRecordOnce: (record: LogRecord): RecordedEvent => readRecord(record).event,
    /**
     * Looks up the data keys of records whose key is the session under whose data key they may be encrypted: what was
     * recorded with encryption switched off is not.
     */
    async loadKeysOf(records: readonly LogRecord[]): Promise<void> {
      const encrypted = records.filter(({ headers }) =>
        schemas.newest.get(headers.event_type ?? '')?.sealer(),
      )
      const sessions = encrypted.flatMap(({ key }) => (/^(sid|gate)_/.test(key) ? key : []))
      if (sealing && sessions.length > 0) await sealing.keys.find([...new Set(sessions)])
    },
    /** Looks up the data keys of unreadable events that were not looked up. Returns whether it did. */
    async findKeysOf(events: readonly RecordedEvent[]): Promise<boolean> {
      const unreadable = events.flatMap((event) => event.unreadable ?? [])
      const missing = unreadable.filter((session) => sealing?.keys.get(session) === undefined)
      if (!sealing || missing.length === 0) return false
      await sealing.keys.load([...new Set(missing)])
      return true
    },
  }
}

function refuseSchema(id: number, isRetired: boolean): never {
  const retired = `written by a pre-release; delete the data directory (schema id ${id})`
  throw new UnreadableRecord(isRetired ? retired : `unknown schema id ${id}`)
}

function withNewest(version: SchemaVersion, { newest }: EventSchemas): WrittenSchema {
  const reader = newest.get(version.name) ?? version
  const resolver = lazy(() => reader.type().createResolver(version.type()))
  return { ...version, newest: reader, resolver: reader === version ? undefined : resolver }
}

function decodeValue(
  schema: WrittenSchema,
  value: Buffer,
  { eventId, parts }: { eventId: string; parts: CodecParts },
): DecodedValue {
  // 1. Decode it by its own version, which says what is encrypted.
  const data: EventFields = schema.type().fromBuffer(value.subarray(prefixBytes))
  const sealer = schema.sealer()
  const sealed = Buffer.isBuffer(data.sealed) ? data.sealed : undefined
  if (!sealer || (!sealed && !sealer.isUnreadable(data)))
    return { event: newestEvent(schema, data) }
  // 2. Decrypt. It fails without the session's key, with another one, or after a change.
  const session = sessionOf(domainEvent(schema, data)) ?? ''
  const dataKey = parts.sealing?.keys.get(session)
  const personal =
    value[0] === openedFormat
      ? sealed
      : sealed && dataKey && sealer.open(value, sealed, { dataKey, eventId })
  // 3. Put the personal fields back, or blanks.
  if (!sealed || !personal) {
    sealer.close(data)
    return { event: newestEvent(schema, data), unreadable: session }
  }
  sealer.restore(data, personal)
  const opened = { session, personal, sealedBytes: sealed.length }
  return { event: newestEvent(schema, data), opened }
}

// Events do not tell what is encrypted in them.
function newestEvent(
  { type, newest, resolver }: WrittenSchema,
  written: EventFields,
): EventAndCause {
  const data: EventFields = resolver
    ? newest.type().fromBuffer(type().toBuffer(written), resolver())
    : written
  if ('sealed' in data) data.sealed = undefined
  if (!newest.isCaused) return domainEvent(newest, data)
  const { actor, request_id, ...rest } = data
  return { ...domainEvent(newest, rest), cause: { actor, request_id } as Cause }
}

const domainEvent = ({ name }: SchemaVersion, data: unknown) =>
  ({ type: name, data }) as DomainEvent

// A codec may read several logs, each with a record at the place.
const isSame = (one: LogRecord, other: LogRecord): boolean =>
  one === other ||
  (one.headers.event_id === other.headers.event_id && one.value.equals(other.value))

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
