import { randomBytes } from 'node:crypto'
import type { Schema } from 'avsc'
import { describe, expect, test } from 'vitest'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { UnreadableRecord } from '../../../infra/event-store/decode.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { eventSchemas } from '../../../infra/event-store/event-schemas.ts'
import { compatibilityProblems } from '../../../schemas/compatibility.ts'
import { assignIds, readSchemaFiles, type SchemaFile } from '../../../schemas/generate.ts'
import committed from '../../../schemas/ids.json' with { type: 'json' }
import { createMemoryDataKeys, type MemoryDataKeys } from '../../support/memory-data-keys.ts'

/** Events with a second version in a later release. One of them has personal data. */
const suspended: DomainEvent = {
  type: 'OrganizationSuspended',
  data: { organization_id: 'org_1', suspended_at: 1 },
}
const attached: DomainEvent = {
  type: 'ClientUserAttached',
  data: {
    session_id: 'sid_1',
    organization_id: 'org_1',
    environment: 'live',
    event_id: 'evt_1',
    client_user_id: 'robin',
    attached_at: 1,
  },
}
const events = [suspended, attached]
const cause = { actor: { type: 'key', id: 'key_1' }, request_id: 'req_1' } as const
const meta = { eventId: 'evt_1', time: 1, organizationId: 'org_1', environment: 'live' } as const
const place = { partition: 0, offset: 0, timestamp: 1 }

const files = readSchemaFiles()
const added = { name: 'added', type: ['null', 'string'], default: null } as const
const seconds = files.flatMap((file) =>
  events.some(({ type }) => type === file.name) ? secondOf(file) : [],
)

/** Adds a field in front of the others: `sealed` must stay last. */
function secondOf({ schema, ...file }: SchemaFile): SchemaFile {
  const fields = [{ ...added, type: [...added.type] }, ...schema.fields]
  const key = file.key.replace('.v1', '.v2')
  return { ...file, version: 2, key, schema: { ...schema, fields } }
}

/** Creates the codec of a release: before, with, or after the one that introduces the second versions. */
function release(
  which: 'before' | 'introduces' | 'after',
  keys: MemoryDataKeys = createMemoryDataKeys(),
) {
  const all = which === 'before' ? files : [...files, ...seconds]
  const readOnly = new Set(which === 'introduces' ? seconds.map(({ key }) => key) : [])
  const schemas = eventSchemas({ files: all, ids: assignIds(all, committed), readOnly })
  return createCodec(undefined, { schemas, sealing: { keys, random: randomBytes } })
}

async function written(
  which: 'before' | 'introduces' | 'after',
  event: DomainEvent,
  keys: MemoryDataKeys,
) {
  const codec = release(which, keys)
  await codec.prepareKeys([event])
  return { ...codec.toRecordWithCause(event, meta, cause), ...place }
}

test('a second version is compatible, gets a new id and keeps the other ids', () => {
  for (const second of seconds) {
    const first = files.find(({ name }) => name === second.name)
    expect(compatibilityProblems([first?.schema as Schema, second.schema as Schema])).toEqual([])
  }
  const ids = assignIds([...files, ...seconds], committed)
  expect(ids).toMatchObject(committed)
  const newest = Math.max(...Object.values(committed))
  expect(seconds.map(({ key }) => ids[key])).toEqual([newest + 1, newest + 2])
})

describe.each(events)('$type', (event) => {
  test('can be read by the previous release when a version is introduced', async () => {
    const keys = createMemoryDataKeys()
    const record = await written('introduces', event, keys)
    expect(release('before', keys).fromRecord(record)).toMatchObject(event)
    expect(release('introduces', keys).fromRecord(record)).toMatchObject(event)
  })

  test('is written in the new version by the next release, and the introducing release can read it', async () => {
    const keys = createMemoryDataKeys()
    const record = await written('after', event, keys)
    expect(record.value.readUInt32BE(1)).toBeGreaterThan(Math.max(...Object.values(committed)))
    const read = release('introduces', keys).fromRecord(record)
    expect(read).toMatchObject({ ...event, data: { ...event.data, added: null }, cause })
    expect(read.unreadable).toBeUndefined()
    expect(release('introduces').decode(read.value)).toMatchObject(event)
    expect(() => release('before', keys).fromRecord(record)).toThrow(UnreadableRecord)
  })

  test('is decoded from the first version to the newest one', async () => {
    const keys = createMemoryDataKeys()
    const read = release('after', keys).fromRecord(await written('before', event, keys))
    expect(read).toMatchObject({ ...event, data: { ...event.data, added: null }, cause })
  })
})
