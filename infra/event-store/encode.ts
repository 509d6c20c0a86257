import { type Cause, eventTopics } from '../../schemas/events.ts'
import { unavailable } from '../errors/errors.ts'
import type { NewRecord } from '../log/port.ts'
import {
  type DomainEvent,
  type EventMeta,
  type KnownCause,
  partitionKeyOf,
  sessionOf,
  type TrafficEvent,
} from './event.ts'
import { type EventSchemas, factsSchema, type SchemaIds, schemaIdOf } from './event-schemas.ts'
import type { Sealing } from './seal.ts'
import { encodeWithSchemaId } from './wire-format.ts'

export interface CodecParts {
  schemas: EventSchemas
  ids: SchemaIds
  sealing: Sealing | undefined
}

export function createEncoder({ schemas, ids, sealing }: CodecParts) {
  // The event id is authenticated with the ciphertext, which therefore can't be copied into another event.
  function encode(event: DomainEvent, cause?: Cause, eventId = ''): Buffer {
    // 1. Choose the newest schema version that the previous release can read.
    const schema = schemas.written.get(event.type)
    if (!schema) throw new Error(`unknown event type ${event.type}`)
    const id = schemaIdOf(ids, schema.key)
    const data = cause ? { ...event.data, ...cause } : event.data
    // 2. Encode an event without personal fields as it is.
    const sealer = sealing && schema.sealer()
    const session = sealer && sessionOf(event)
    if (!sealing || !sealer || !session) return encodeWithSchemaId(id, schema.type(), data)
    // 3. Get the data key. An erased session has none, so its personal fields are left out.
    const dataKey = sealing.keys.get(session)
    if (dataKey === undefined)
      throw unavailable(new Error(`the data key of ${session} was not looked up`))
    if (!dataKey) return encodeWithSchemaId(id, schema.type(), sealer.withoutPersonal(data))
    // 4. Encrypt the personal fields.
    return sealer.seal(data, { id, dataKey, eventId, random: sealing.random })
  }

  function recordOf(event: DomainEvent, meta: EventMeta, cause?: Cause): NewRecord {
    return {
      topic: eventTopics[event.type],
      key: partitionKeyOf(event),
      value: encode(event, cause, meta.eventId),
      headers: headersOf(event, meta),
    }
  }

  return {
    encode,
    /** Encodes a session's fact row, which is not an event and isn't encrypted. */
    encodeFacts(row: object): Buffer {
      const { key, type } = factsSchema()
      return encodeWithSchemaId(schemaIdOf(ids, key), type, row)
    },
    /** Creates or loads the data keys that the events need. Returns undefined if all are in memory. */
    prepareKeys(events: readonly DomainEvent[]): Promise<void> | undefined {
      const encrypted = events.filter(({ type }) => schemas.written.get(type)?.sealer())
      return sealing?.keys.ensure(encrypted.flatMap((event) => sessionOf(event) ?? []))
    },
    toRecord: (event: TrafficEvent, meta: EventMeta) => recordOf(event, meta),
    /** Encodes an event of a command. Drops the cause of a traffic event, whose schema has no field for it. */
    toRecordWithCause: (event: DomainEvent, meta: EventMeta, cause: KnownCause) =>
      recordOf(event, meta, cause),
  }
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
