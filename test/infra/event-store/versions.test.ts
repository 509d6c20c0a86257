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

/** Events of which a later release has a second version, one of them with something personal. */
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

/** The same with another field, in front of what is encrypted, which stays the last. */
function secondOf({ schema, ...file }: SchemaFile): SchemaFile {
  const fields = [{ ...added, type: [...added.type] }, ...schema.fields]
  const key = file.key.replace('.v1', '.v2')
  return { ...file, version: 2, key, schema: { ...schema, fields } }
}

/** The three releases: the one before, the one that brings the versions, and the one after it. */
function release(
  which: 'before' | 'brings' | 'after',
  keys: MemoryDataKeys = createMemoryDataKeys(),
) {
  const all = which === 'before' ? files : [...files, ...seconds]
  const readOnly = new Set(which === 'brings' ? seconds.map(({ key }) => key) : [])
  const schemas = eventSchemas({ files: all, ids: assignIds(all, committed), readOnly })
  return createCodec(undefined, { schemas, sealing: { keys, random: randomBytes } })
}

async function written(
  which: 'before' | 'brings' | 'after',
  event: DomainEvent,
  keys: MemoryDataKeys,
) {
  const codec = release(which, keys)
  await codec.prepare([event])
  return { ...codec.toCausedRecord(event, meta, cause), ...place }
}

test('a second version is compatible, has an id of its own and changes no other', () => {
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
  test('of a release that brings a version is read by the release before, so that one can go back', async () => {
    const keys = createMemoryDataKeys()
    const record = await written('brings', event, keys)
    expect(release('before', keys).fromRecord(record)).toMatchObject(event)
    expect(release('brings', keys).fromRecord(record)).toMatchObject(event)
  })

  test('is written in the new version by the release after, which can go back to the one that brought it', async () => {
    const keys = createMemoryDataKeys()
    const record = await written('after', event, keys)
    expect(record.value.readUInt32BE(1)).toBeGreaterThan(Math.max(...Object.values(committed)))
    const read = release('brings', keys).fromRecord(record)
    expect(read).toMatchObject({ ...event, data: { ...event.data, added: null }, cause })
    expect(read.unreadable).toBeUndefined()
    expect(release('brings').decode(read.value)).toMatchObject(event)
    expect(() => release('before', keys).fromRecord(record)).toThrow(UnreadableRecord)
  })

  test('of the first version is read for ever, in the form of the newest', async () => {
    const keys = createMemoryDataKeys()
    const read = release('after', keys).fromRecord(await written('before', event, keys))
    expect(read).toMatchObject({ ...event, data: { ...event.data, added: null }, cause })
  })
})
