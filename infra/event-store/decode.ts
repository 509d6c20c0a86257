import type { Resolver } from 'avsc'
import type { Cause } from '../../schemas/events.ts'
import { type LogRecord, partitionName } from '../log/port.ts'
import { createLru } from '../lru.ts'
import type { CodecParts } from './encode.ts'
import {
  type DomainEvent,
  type EventAndCause,
  type EventMeta,
  type RecordedEvent,
  sessionOf,
} from './event.ts'
import { type EventSchemas, lazy, type SchemaVersion, schemaIdOf } from './event-schemas.ts'
import type { EventFields } from './seal.ts'
import {
  decryptedFormat,
  decryptedValue,
  prefixBytes,
  wireFormat,
  withSchemaId,
} from './wire-format.ts'

export class UnreadableRecord extends Error {}

/** The schema version that a record was written with, and how to resolve it to the newest version. */
interface WriterSchema extends SchemaVersion {
  newest: SchemaVersion
  resolver: (() => Resolver) | undefined
}

interface DecodedValue {
  event: EventAndCause
  /** The decrypted personal fields and the session whose data key encrypted them. */
  decrypted?: { session: string; personal: Buffer; sealedBytes: number }
  unreadable?: string
}

interface CachedEvent {
  record: LogRecord
  event: RecordedEvent
  /** The session whose data key encrypts the event. */
  session: string | undefined
}

// Events are a few kilobytes each. Enough to cover the longest batch delay of a read model at full load.
const maxCached = 1000

export function createDecoder(parts: CodecParts) {
  const { schemas, ids, sealing } = parts
  const byId = new Map(
    schemas.versions.map((version) => [schemaIdOf(ids, version.key), withNewest(version, schemas)]),
  )
  const newestId = Math.max(...byId.keys())
  const cache = createLru<string, CachedEvent>(maxCached)

  function schemaOf(value: Buffer, format: number): WriterSchema {
    if (value.length < prefixBytes || value[0] !== format)
      throw new UnreadableRecord('not in the Confluent wire format')
    const id = value.readUInt32BE(1)
    // Committed ids are sequential and never reused, so a missing one belongs to a schema that was never released.
    const isRetired = ids === schemas.ids && id < newestId
    return byId.get(id) ?? throwUnknownSchema(id, isRetired)
  }

  function readRecord(record: LogRecord): CachedEvent {
    const { topic, partition, offset, headers, value } = record
    const schema = schemaOf(value, wireFormat)
    const { event_type: type, event_id: eventId = '' } = headers
    if (schema.name !== type)
      throw new UnreadableRecord(`a ${type} under the schema of ${schema.name}`)
    const { event, decrypted, unreadable } = decodeValue(schema, value, { eventId, parts })
    const recorded: RecordedEvent = {
      ...event,
      meta: metaOf(record),
      position: { topic, partition, offset },
      get value() {
        return decrypted
          ? decryptedValue(value, { ...decrypted, id: schema.id })
          : withSchemaId(schema.id, value)
      },
      ...(unreadable !== undefined && { unreadable }),
    }
    return { record, event: recorded, session: decrypted?.session }
  }

  const hasKey = (session: string) => Boolean(sealing?.keys.get(session))

  return {
    /** Decodes an event without its record: encrypted as on the log, or decrypted as read models store it. */
    decode(value: Buffer): EventAndCause {
      const schema = schemaOf(value, value[0] === decryptedFormat ? decryptedFormat : wireFormat)
      return decodeValue(schema, value, { eventId: '', parts }).event
    },
    /** Decodes a record. Caches the event, because several consumers of a process read the same record. */
    fromRecord(record: LogRecord): RecordedEvent {
      const name = `${partitionName(record)}/${record.offset}`
      const cached = cache.get(name)
      // If the key is gone, the session has been erased since.
      if (cached && isSame(cached.record, record) && (!cached.session || hasKey(cached.session)))
        return cached.event
      const decoded = readRecord(record)
      // An unreadable event isn't cached: its key may be in memory the next time.
      if (decoded.event.unreadable === undefined) cache.set(name, decoded)
      return decoded.event
    },
    /** Decodes a record without the cache, which took a sixth of the CPU time of a rebuild. For a single reader. */
    fromRecordUncached: (record: LogRecord): RecordedEvent => readRecord(record).event,
    /** Loads the data keys of records that are keyed by session and may be encrypted. */
    async loadKeysOf(records: readonly LogRecord[]): Promise<void> {
      const encrypted = records.filter(({ headers }) =>
        schemas.newest.get(headers.event_type ?? '')?.sealer(),
      )
      const sessions = encrypted.flatMap(({ key }) => (/^(sid|gate)_/.test(key) ? key : []))
      if (sealing && sessions.length > 0) await sealing.keys.load([...new Set(sessions)])
    },
    /** Loads the data keys of unreadable events that were never looked up. Returns false if there are none. */
    async loadMissingKeysOf(events: readonly RecordedEvent[]): Promise<boolean> {
      const unreadable = events.flatMap((event) => event.unreadable ?? [])
      const missing = unreadable.filter((session) => sealing?.keys.get(session) === undefined)
      if (!sealing || missing.length === 0) return false
      await sealing.keys.loadOrMarkErased([...new Set(missing)])
      return true
    },
  }
}

function throwUnknownSchema(id: number, isRetired: boolean): never {
  const retired = `written by a pre-release; delete the data directory (schema id ${id})`
  throw new UnreadableRecord(isRetired ? retired : `unknown schema id ${id}`)
}

function withNewest(version: SchemaVersion, { newest }: EventSchemas): WriterSchema {
  const reader = newest.get(version.name) ?? version
  const resolver = lazy(() => reader.type().createResolver(version.type()))
  return { ...version, newest: reader, resolver: reader === version ? undefined : resolver }
}

function decodeValue(
  schema: WriterSchema,
  value: Buffer,
  { eventId, parts }: { eventId: string; parts: CodecParts },
): DecodedValue {
  // 1. Decode with the writer's schema, which names the encrypted fields.
  const data: EventFields = schema.type().fromBuffer(value.subarray(prefixBytes))
  const sealer = schema.sealer()
  const sealed = Buffer.isBuffer(data.sealed) ? data.sealed : undefined
  if (!sealer || (!sealed && !sealer.isUnreadable(data))) return { event: upcast(schema, data) }
  // 2. Decrypt. Fails without the session's key, with another key, or if the value was altered.
  const session = sessionOf(domainEvent(schema, data)) ?? ''
  const dataKey = parts.sealing?.keys.get(session)
  const personal =
    value[0] === decryptedFormat
      ? sealed
      : sealed && dataKey && sealer.open(value, sealed, { dataKey, eventId })
  // 3. Restore the personal fields, or fill in blanks.
  if (!sealed || !personal) {
    sealer.fillBlanks(data)
    return { event: upcast(schema, data), unreadable: session }
  }
  sealer.restore(data, personal)
  const decrypted = { session, personal, sealedBytes: sealed.length }
  return { event: upcast(schema, data), decrypted }
}

// Converts the data to the newest schema version, without the field `sealed`.
function upcast({ type, newest, resolver }: WriterSchema, written: EventFields): EventAndCause {
  const data: EventFields = resolver
    ? newest.type().fromBuffer(type().toBuffer(written), resolver())
    : written
  if ('sealed' in data) data.sealed = undefined
  if (!newest.hasCause) return domainEvent(newest, data)
  const { actor, request_id, ...rest } = data
  return { ...domainEvent(newest, rest), cause: { actor, request_id } as Cause }
}

const domainEvent = ({ name }: SchemaVersion, data: unknown) =>
  ({ type: name, data }) as DomainEvent

// A codec may read several logs, so an offset alone doesn't identify a record.
const isSame = (a: LogRecord, b: LogRecord): boolean =>
  a === b || (a.headers.event_id === b.headers.event_id && a.value.equals(b.value))

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
