import avro, { type Schema } from 'avsc'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  createCodec,
  type DomainEvent,
  type EventMeta,
  keyOf,
  UnreadableRecord,
} from '../../../infra/event-store/codec.ts'
import { readSchemaFiles } from '../../../schemas/generate.ts'
import ids from '../../../schemas/ids.json' with { type: 'json' }
import { valuesOf } from '../../schemas/arbitrary.ts'

const codec = createCodec()
const files = readSchemaFiles()
const newest = [...new Map(files.map((file) => [file.name, file])).values()]
const asEvent = (type: string, data: unknown) => ({ type, data }) as DomainEvent

const meta = fc.record<EventMeta>({
  eventId: fc.string({ minLength: 1 }),
  time: fc.nat(),
  organizationId: fc.option(fc.constant('org_1')),
  environment: fc.option(fc.constantFrom('live', 'test')),
})

describe.each(newest.map((file) => [file.name, file] as const))('%s', (name, file) => {
  const data = valuesOf(avro.Type.forSchema(file.schema as Schema))

  test('survives a record there and back', () => {
    fc.assert(
      fc.property(data, meta, (value, its) => {
        const record = codec.toRecord(asEvent(name, value), its)
        const position = { partition: 3, offset: 7, timestamp: 1 }
        const read = codec.fromRecord({ ...record, ...position })
        const { topic } = record
        expect(read).toEqual({
          type: name,
          data: value,
          meta: its,
          position: { topic, partition: 3, offset: 7 },
          value: record.value,
        })
      }),
      { numRuns: 30 },
    )
  })

  test('is in the Confluent wire format under its committed id', () => {
    const [value] = fc.sample(data, { numRuns: 1, seed: 1 })
    const bytes = codec.encode(asEvent(name, value))
    expect(bytes[0]).toBe(0)
    const known: Record<string, number> = ids
    expect(bytes.readUInt32BE(1)).toBe(known[file.key])
    expect(avro.Type.forSchema(file.schema as Schema).fromBuffer(bytes.subarray(5))).toEqual(value)
  })
})

test('ids of a registry are used for writing and reading', () => {
  const moved = Object.fromEntries(Object.entries(ids).map(([key, id]) => [key, id + 1000]))
  const other = createCodec(moved)
  const event = asEvent(
    'OrganizationRenamed',
    fc.sample(dataOf('OrganizationRenamed'), { numRuns: 1, seed: 1 })[0],
  )
  const bytes = other.encode(event)
  expect(bytes.readUInt32BE(1)).toBe(ids['organizations/OrganizationRenamed.v1'] + 1000)
  expect(other.decode(bytes)).toEqual(event)
  expect(() => codec.decode(bytes)).toThrow(UnreadableRecord)

  const record = other.toRecord(event, { eventId: 'e', time: 1, organizationId: null, environment: null })
  const { value } = other.fromRecord({ ...record, partition: 0, offset: 0, timestamp: 1 })
  expect(codec.decode(value)).toEqual(event)
})

test.each([
  ['empty', Buffer.alloc(0)],
  ['another format', Buffer.from('{"a":1}')],
  ['an unknown schema', Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1])],
])('refuses a value that is %s', (_, value) => {
  expect(() => codec.decode(value)).toThrow(UnreadableRecord)
})

test.each([
  [ids['gate/GateSessionOpened.v2'], 2],
  [ids['gate/GateSessionOpened.v2'] - 1, 1],
  [0, 2],
] as const)(
  'an event is written in its newest version up to the id %i, if there is one',
  (writtenUpTo, version) => {
    const limited = createCodec(ids, { writtenUpTo })
    const event = asEvent(
      'GateSessionOpened',
      fc.sample(dataOf('GateSessionOpened'), { numRuns: 1, seed: 1 })[0],
    )
    const value = limited.encode(event)
    expect(value.readUInt32BE(1)).toBe(ids[`gate/GateSessionOpened.v${version}`])
    expect(keyOf(codec.decode(value))).toBe(keyOf(event))
  },
)

function dataOf(name: string): fc.Arbitrary<unknown> {
  const file = newest.find((one) => one.name === name)
  if (!file) throw new Error(`no event ${name}`)
  return valuesOf(avro.Type.forSchema(file.schema as Schema))
}

test.each([65_000, 65_536, 200_000])(
  'a payload of %i bytes survives, whatever was encoded before it',
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
    const encoded = [event, small].map(codec.encode)
    expect(encoded.map(codec.decode)).toEqual([event, small])
  },
)

test.each([
  ['SessionScored', 'session_id'],
  ['NetworkChecked', 'check_id'],
  ['ApiKeyIssued', 'organization_id'],
  ['WebhookEndpointSecretRotated', 'organization_id'],
  ['WebhookEventRaised', 'event_id'],
  ['WebhookDeliveryAttempted', 'event_id'],
  ['WebhookDeliverySkipped', 'event_id'],
  ['WebhookRedeliveryRequested', 'event_id'],
])('%s is about its %s', (name, member) => {
  const [data] = fc.sample(dataOf(name), { numRuns: 1, seed: 1 })
  expect(keyOf(asEvent(name, data))).toBe(Object(data)[member])
})
