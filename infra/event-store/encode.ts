import { type Cause, eventTopics } from '../../schemas/events.ts'
import { unavailable } from '../errors/errors.ts'
import type { NewRecord } from '../log/port.ts'
import {
  type DomainEvent,
  type EventMeta,
  type KnownCause,
  keyOf,
  sessionOf,
  type TrafficEvent,
} from './event.ts'
import { type EventSchemas, factsSchema, idIn, type SchemaIds } from './event-schemas.ts'
import type { Sealing } from './seal.ts'
import { encodeUnder } from './wire-format.ts'

export interface CodecParts {
  schemas: EventSchemas
  ids: SchemaIds
  sealing: Sealing | undefined
}

export function createEncoder({ schemas, ids, sealing }: CodecParts) {
  // Binds encrypted fields to the event's id, so that they open in no other event.
  function encode(event: DomainEvent, cause?: Cause, eventId = ''): Buffer {
    // 1. Take the schema version that the release before reads, too.
    const schema = schemas.written.get(event.type)
    if (!schema) throw new Error(`unknown event type ${event.type}`)
    const id = idIn(ids, schema.key)
    const data = cause ? { ...event.data, ...cause } : event.data
    // 2. An event that says nothing about a person is not encrypted.
    const sealer = sealing && schema.sealer()
    const session = sealer && sessionOf(event)
    if (!sealing || !sealer || !session) return encodeUnder(id, schema.type(), data)
    // 3. Find the data key. Nothing more is recorded of an erased session, which has none.
    const dataKey = sealing.keys.get(session)
    if (dataKey === undefined)
      throw unavailable(new Error(`the data key of ${session} was not looked up`))
    if (!dataKey) return encodeUnder(id, schema.type(), sealer.withoutPersonal(data))
    // 4. Encrypt the personal fields.
    return sealer.seal(data, { id, dataKey, eventId, random: sealing.random })
  }

  function recordOf(event: DomainEvent, meta: EventMeta, cause?: Cause): NewRecord {
    return {
      topic: eventTopics[event.type],
      key: keyOf(event),
      value: encode(event, cause, meta.eventId),
      headers: headersOf(event, meta),
    }
  }

  return {
    encode,
    /** Encodes the flat row of a session, which is no event and not encrypted. */
    encodeFacts(row: object): Buffer {
      const { key, type } = factsSchema()
      return encodeUnder(idIn(ids, key), type, row)
    },
    /** Makes the data keys that are needed to write the events. undefined = they are in memory. */
    prepare(events: readonly DomainEvent[]): Promise<void> | undefined {
      const encrypted = events.filter(({ type }) => schemas.written.get(type)?.sealer())
      return sealing?.keys.ensure(encrypted.flatMap((event) => sessionOf(event) ?? []))
    },
    toRecord: (event: TrafficEvent, meta: EventMeta) => recordOf(event, meta),
    /** Traffic, too, where a command leads to it: its records have no place for the cause. */
    toCausedRecord: (event: DomainEvent, meta: EventMeta, cause: KnownCause) =>
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
