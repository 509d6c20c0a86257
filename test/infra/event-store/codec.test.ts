import avro, { type Schema } from 'avsc'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { UnreadableRecord } from '../../../infra/event-store/decode.ts'
import type { DomainEvent, EventMeta, KnownCause } from '../../../infra/event-store/event.ts'
import { openedSchema, readSchemaFiles } from '../../../schemas/generate.ts'
import ids from '../../../schemas/ids.json' with { type: 'json' }
import { valuesOf } from '../../schemas/arbitrary.ts'

const codec = createCodec()
const files = readSchemaFiles()
const newest = [...new Map(files.map((file) => [file.name, file])).values()]
const asEvent = (type: string, data: unknown) => ({ type, data }) as DomainEvent

const isCaused = (name: string) =>
  newest.some((one) => one.name === name && hasActor(one.schema.fields))
const hasActor = (fields: { name: string }[]) => fields.some((field) => field.name === 'actor')

/** Splits a value into the event and its cause, if its schema has one. */
function partsOf(name: string, value: object) {
  if (!isCaused(name)) return { event: asEvent(name, value), recorded: {} }
  const { actor, request_id, ...data } = causedValue.parse(value)
  return { event: asEvent(name, data), recorded: { cause: { actor, request_id } } }
}

const actorTypes = ['key', 'operator', 'person', 'agent', 'service', 'scheduler', 'other'] as const
const causedValue = z.looseObject({
  actor: z.object({ type: z.enum(actorTypes), id: z.string() }),
  request_id: z.string().nullable(),
})
const someone: KnownCause = { actor: { type: 'key', id: 'key_1' }, request_id: 'req_1' }

const meta = fc.record<EventMeta>({
  eventId: fc.string({ minLength: 1 }),
  time: fc.nat(),
  organizationId: fc.option(fc.constant('org_1')),
  environment: fc.option(fc.constantFrom('live', 'test')),
})

describe.each(newest.map((file) => [file.name, file] as const))('%s', (name, file) => {
  const data = dataOf(name)

  test('survives a round trip through a record', () => {
    fc.assert(
      fc.property(data, meta, (value, its) => {
        const { event } = partsOf(name, value)
        const record = codec.toRecordWithCause(event, its, someone)
        const position = { partition: 3, offset: 7, timestamp: 1 }
        const { topic, value: written } = record
        expect(codec.fromRecord({ ...record, ...position })).toEqual({
          ...event,
          ...(isCaused(name) && { cause: someone }),
          meta: its,
          position: { topic, partition: 3, offset: 7 },
          value: written,
        })
      }),
      { numRuns: 30 },
    )
  })

  test('is encoded in the Confluent wire format with its committed id', () => {
    const [value = {}] = fc.sample(data, { numRuns: 1, seed: 1 })
    const { event, recorded } = partsOf(name, value)
    const bytes = codec.encode(event, recorded.cause)
    expect(codec.decode(bytes)).toEqual({ ...event, ...recorded })
    expect(bytes[0]).toBe(0)
    const known: Record<string, number> = ids
    expect(bytes.readUInt32BE(1)).toBe(known[file.key])
    const read = avro.Type.forSchema(file.schema as Schema).fromBuffer(bytes.subarray(5))
    expect({ ...read, sealed: undefined }).toEqual(value)
  })
})

test('the ids of a registry are used for encoding and decoding', () => {
  const moved = Object.fromEntries(Object.entries(ids).map(([key, id]) => [key, id + 1000]))
  const other = createCodec(moved)
  const data = { organization_id: 'org_1', name: 'New', renamed_at: 1 }
  const event = { type: 'OrganizationRenamed', data, cause: someone } as const
  const bytes = other.encode(event, someone)
  expect(bytes.readUInt32BE(1)).toBe(ids['organizations/OrganizationRenamed.v1'] + 1000)
  expect(other.decode(bytes)).toEqual(event)
  expect(() => codec.decode(bytes)).toThrow(UnreadableRecord)

  const about = { eventId: 'e', time: 1, organizationId: null, environment: null }
  const record = other.toRecordWithCause(event, about, someone)
  const { value } = other.fromRecord({ ...record, partition: 0, offset: 0, timestamp: 1 })
  expect(codec.decode(value)).toEqual(event)
})

test.each([
  ['an empty value', Buffer.alloc(0)],
  ['another format', Buffer.from('{"a":1}')],
  ['an unknown schema', Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1])],
])('decoding fails for %s', (_, value) => {
  expect(() => codec.decode(value)).toThrow(UnreadableRecord)
})

test('the error for a retired id says that a pre-release wrote the record', () => {
  const [, ...given] = Array.from({ length: Math.max(...Object.values(ids)) + 1 }, (_, id) => id)
  const retired = given.filter((id) => !Object.values(ids).includes(id))
  expect(retired).toContain(77)
  for (const id of retired) {
    const value = Buffer.from([0, 0, 0, 0, id, 1])
    expect(() => codec.decode(value)).toThrow(
      `written by a pre-release; delete the data directory (schema id ${id})`,
    )
  }
})

test('decoding fails if the header and the schema name different events', () => {
  const data = { organization_id: 'org_1', suspended_at: 1 }
  const its = { eventId: 'e', time: 1, organizationId: null, environment: null }
  const record = codec.toRecordWithCause({ type: 'OrganizationSuspended', data }, its, someone)
  const headers = { ...record.headers, event_type: 'OrganizationDeleted' }
  const place = { partition: 0, offset: 0, timestamp: 1 }
  expect(() => codec.fromRecord({ ...record, headers, ...place })).toThrow(UnreadableRecord)
})

function dataOf(name: string): fc.Arbitrary<object> {
  const file = newest.find((one) => one.name === name)
  if (!file) throw new Error(`no event ${name}`)
  return valuesOf(avro.Type.forSchema(openedSchema(file.schema) as Schema)).map((value) =>
    Object(value),
  )
}

test.each([65_000, 65_536, 200_000])(
  'a payload of %i bytes survives a round trip, as does the next event',
  (size) => {
    const batch = {
      session_id: 'sid_1',
      organization_id: 'org_1',
      environment: 'live',
      event_id: 'bat_1',
      document_id_hash: 'd'.repeat(64),
      seq: 1,
      received_at: 1_800_000_000_000,
      ip_address: '127.0.0.1',
      user_agent: '',
      body_hash: 'b'.repeat(64),
    }
    const event = asEvent('BatchReceived', { ...batch, payload: Buffer.alloc(size, 7) })
    const small = asEvent('BatchReceived', { ...batch, payload: Buffer.alloc(10, 1) })
    const encoded = [event, small].map((one) => codec.encode(one))
    expect(encoded.map(codec.decode)).toEqual([event, small])
  },
)
