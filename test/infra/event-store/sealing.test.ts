import { randomBytes } from 'node:crypto'
import avro, { type Schema } from 'avsc'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { UnreadableRecord } from '../../../infra/event-store/decode.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { openedSchema, readSchemaFiles } from '../../../schemas/generate.ts'
import ids from '../../../schemas/ids.json' with { type: 'json' }
import { personalFields } from '../../../schemas/personal.ts'
import { valuesOf } from '../../schemas/arbitrary.ts'
import { createMemoryDataKeys, type MemoryDataKeys } from '../../support/memory-data-keys.ts'
import { testCause } from '../../support/projections.ts'
import { sessionScored } from '../../support/session-scored.ts'

const newest = new Map(readSchemaFiles().map((file) => [file.name, file]))
const personal = Object.entries(personalFields)
const meta = { eventId: 'evt_1', time: 1, organizationId: 'org_1', environment: 'live' } as const
const place = { partition: 0, offset: 0, timestamp: 1 }
const codecWith = (keys: MemoryDataKeys) =>
  createCodec(ids, { sealing: { keys, random: randomBytes } })

function eventsOf(name: string): fc.Arbitrary<DomainEvent> {
  const file = newest.get(name)
  if (!file) throw new Error(`no event ${name}`)
  const data = valuesOf(avro.Type.forSchema(openedSchema(file.schema) as unknown as Schema))
  return data.map(
    (value) => ({ type: name, data: ofOneSession(Object(value)) }) as unknown as DomainEvent,
  )
}

const session = 'sid_1'
const gateSession = 'gate_1'

function ofOneSession({
  actor: _,
  request_id: __,
  ...data
}: Record<string, unknown>): Record<string, unknown> {
  if ('gate_session_id' in data) return { ...data, gate_session_id: gateSession }
  if ('session_id' in data) return { ...data, session_id: session }
  if ('session_subject_id' in data) return { ...data, session_subject_id: session }
  return { ...data, subject_type: 'session', subject_id: session }
}

function marked() {
  const data = sessionScored()
  const request = { ...data.request, user_agent: 'a marked agent' }
  return { type: 'SessionScored', data: { ...data, session_id: session, request } } as const
}

/** Encodes the event under a new key. */
async function written(event: DomainEvent = marked()) {
  const keys = createMemoryDataKeys()
  const codec = codecWith(keys)
  await codec.prepareKeys([event])
  return {
    keys,
    codec,
    event,
    record: { ...codec.toRecordWithCause(event, meta, testCause), ...place },
  }
}

describe.each(personal)('%s', (name, fields) => {
  const events = eventsOf(name)

  test('survives encryption and a read by another process', async () => {
    await fc.assert(
      fc.asyncProperty(events, async (event) => {
        const { keys, codec: writer, record } = await written(event)
        const read = codecWith(keys).fromRecord(record)
        expect({ type: read.type, data: read.data, unreadable: read.unreadable }).toEqual(event)
        // The form in which read models store it needs no key.
        expect(createCodec().decode(read.value)).toMatchObject(event)
        expect(writer.fromRecord(record).value).toEqual(read.value)
        expect(() => createCodec().fromRecord({ ...record, value: read.value })).toThrow(
          UnreadableRecord,
        )
      }),
      { numRuns: 30 },
    )
  })

  test('has only its readable fields without the key', async () => {
    await fc.assert(
      fc.asyncProperty(events, async (event) => {
        const { record } = await written(event)
        for (const reader of [codecWith(createMemoryDataKeys()), createCodec()]) {
          const read = reader.fromRecord(record)
          expect(read.unreadable).toBe('gate_session_id' in event.data ? gateSession : session)
          expect(read.data).toMatchObject(readable(event.data))
        }
      }),
      { numRuns: 30 },
    )
  })

  test('has null on the log for encrypted fields, and for those of an erased session', async () => {
    const schema = newest.get(name)?.schema
    const onLog = avro.Type.forSchema(schema as unknown as Schema)
    const nulls = Object.fromEntries(fields.map((field) => [field, null]))
    await fc.assert(
      fc.asyncProperty(events, async (event) => {
        const { keys, codec } = await written(event)
        const stored = () =>
          onLog.fromBuffer(codec.toRecordWithCause(event, meta, testCause).value.subarray(5))
        const encrypted = stored()
        expect(encrypted.sealed).toBeInstanceOf(Buffer)
        for (const id of [session, gateSession]) keys.erase(id)
        const erased = stored()
        expect(erased).toEqual({ ...encrypted, sealed: null })
        const { visitor, ...others } = erased
        expect(others).toMatchObject({ ...readable(event.data), ...without(nulls, 'visitor') })
        if (visitor) expect(visitor).toMatchObject(unlinked)
      }),
      { numRuns: 30 },
    )
  })

  function readable(data: object) {
    return Object.fromEntries(
      Object.entries(data).filter(([field]) => !fields.some((one) => one === field)),
    )
  }
})

/** The fields of a decision that link it to a person, except for the visitor's id. */
const unlinked = { continuity_id: null, anchors: null, vector: null, storage: null }

function without(object: Record<string, unknown>, name: string) {
  return Object.fromEntries(Object.entries(object).filter(([member]) => member !== name))
}

test('the bytes of a record contain no personal data', async () => {
  const { record, event } = await written()
  expect(createCodec().encode(event).includes('a marked agent')).toBe(true)
  expect(record.value.includes('a marked agent')).toBe(false)
})

test('after an erasure, personal data is neither written nor decrypted', async () => {
  const { keys, codec, record } = await written()
  const event = marked()
  // A decoded event is cached.
  expect(codec.fromRecord(record)).toBe(
    codec.fromRecord({ ...record, value: Buffer.from(record.value) }),
  )
  keys.erase(session)
  const { verdict, visitor } = event.data
  const data = { request: { user_agent: '' }, verdict, visitor: { id: visitor?.id } }
  for (const reader of [codec, codecWith(keys)])
    expect(reader.fromRecord(record)).toMatchObject({ unreadable: session, data })
  const late = codec.toRecord(event, meta)
  expect(late.value.includes('a marked agent')).toBe(false)
  expect(codec.fromRecord({ ...late, ...place })).toMatchObject({ unreadable: session, data })
})

test('encoding without a looked-up key throws 503', () => {
  expect(() => codecWith(createMemoryDataKeys()).encode(marked())).toThrow(
    expect.objectContaining({ code: 'service.unavailable' }),
  )
})

test('another key or an altered record cannot be decrypted', async () => {
  const { codec, record, event } = await written()
  const { codec: another } = await written()
  expect(another.fromRecord(record).unreadable).toBe(session)
  const changed = Buffer.from(record.value)
  changed.writeUInt8(changed.readUInt8(changed.length - 1) ^ 1, changed.length - 1)
  expect(codec.fromRecord({ ...record, value: changed }).unreadable).toBe(session)
  expect(codec.fromRecord(record).data).toEqual(event.data)
})

test('ciphertext cannot be moved to another event, nor its readable fields altered', async () => {
  const { keys, codec, record } = await written()
  const event = marked()
  const verdict = event.data.verdict === 'human' ? ('bot' as const) : ('human' as const)
  const another = codec.toRecord({ ...event, data: { ...event.data, verdict } }, meta)
  const reader = codecWith(keys)
  expect(reader.fromRecord(record).unreadable).toBeUndefined()
  const headers = { ...record.headers, event_id: 'evt_2' }
  expect(reader.fromRecord({ ...record, headers }).unreadable).toBe(session)
  // The records have the same length, and the verdict is their first difference.
  const at = record.value.findIndex((byte, i) => byte !== another.value[i])
  const changed = Buffer.from(record.value)
  changed.writeUInt8(another.value.readUInt8(at), at)
  const read = reader.fromRecord({ ...record, value: changed })
  expect(read).toMatchObject({ data: { verdict }, unreadable: session })
})
