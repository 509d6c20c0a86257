import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createCodec } from '../../../../infra/event-store/codec.ts'
import { eventColumns } from '../../../../services/cli/export/columns.ts'
import { eventParts, writeEvents } from '../../../../services/cli/export/events.ts'
import {
  type ExportManifest,
  findManifest,
  missingParts,
  saveManifest,
} from '../../../../services/cli/export/manifest.ts'
import { createMemoryLog } from '../../../support/memory-log.ts'
import { noSkips } from '../../../support/no-skips.ts'
import { metaOf, sessionScored } from '../../../support/session-scored.ts'

const topic = 'tidegate.sessions.v1'
const codec = createCodec()
let now = 0
let log = createMemoryLog()
let folder: string

beforeEach(async () => {
  now = 0
  log = createMemoryLog({ now: () => now })
  folder = await mkdtemp(path.join(tmpdir(), 'tidegate-export-events-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** Events are recorded a minute after another. */
async function append(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    now += 60_000
    const data = sessionScored({ event_id: `evt_${now}` })
    await log.append([codec.toRecord({ type: 'SessionScored', data }, metaOf(data))])
  }
}

const filters = { since: null, until: null, organization_id: null, environment: null, topic, type: null }
const request = { what: 'events', format: 'jsonl', is_open: false, filters } as const

async function planned(since = 0, until = Number.MAX_SAFE_INTEGER): Promise<ExportManifest> {
  const parts = await eventParts(log, { topic, since, until }, { format: 'jsonl', each: 4 })
  const times = { since, until, columns: eventColumns }
  const manifest: ExportManifest = { version: 1, ...request, ...times, state: 'unfinished', rows: 0, parts }
  await saveManifest(folder, manifest)
  return manifest
}

/** Makes what is missing; `endsAfter` = it is interrupted at the end of so many parts, when the last is not noted. */
async function write(manifest: ExportManifest, endsAfter = Infinity): Promise<number> {
  let made = 0
  const onPart = async (part: { rows: number | null }, rows: number) => {
    if (++made > endsAfter) throw new Error('killed')
    part.rows = rows
    await saveManifest(folder, manifest)
  }
  const source = { log, codec, skips: noSkips }
  const parts = await missingParts(folder, manifest)
  const written = writeEvents({ source, folder, manifest, topic, onPart, onDone: () => {} }, parts)
  await written.catch((error: Error) => expect(error.message).toBe('killed'))
  return made
}

async function offsets({ parts }: ExportManifest): Promise<number[][]> {
  const files = parts.map(({ file }) => readFile(path.join(folder, file), 'utf8'))
  const lines = (await Promise.all(files)).map((text) => text.split('\n').filter(Boolean))
  return lines.map((some) => some.map((line) => JSON.parse(line).offset))
}

it('parts have the events of their offsets, and those that were interrupted are made by the next run', async () => {
  await append(10)
  const whole = [
    [0, 1, 2, 3],
    [4, 5, 6, 7],
    [8, 9],
  ]
  await planned()
  const first = await findManifest(folder, request)
  if (!first) throw new Error('no manifest')
  expect(await write(first, 1)).toBe(2)
  // What came since is of no part.
  await append(5)
  const second = await findManifest(folder, request)
  if (!second) throw new Error('no manifest')
  expect(second.parts.map(({ rows }) => rows)).toEqual([4, null, null])
  expect(await write(second)).toBe(2)
  expect(await offsets(second)).toEqual(whole)
  await rm(path.join(folder, second.parts[1]?.file ?? ''))
  expect(await write(second)).toBe(1)
  expect(await offsets(second)).toEqual(whole)
})

it('only events that were recorded in the time are in it', async () => {
  await append(12)
  const manifest = await planned(3 * 60_000, 6 * 60_000)
  await write(manifest)
  expect((await offsets(manifest)).flat()).toEqual([2, 3, 4])
})

it('a record that cannot be read ends it with its place', async () => {
  await append(2)
  await log.append([{ topic, key: 'x', value: Buffer.from('not ours'), headers: {} }])
  const manifest = await planned()
  const parts = await missingParts(folder, manifest)
  const reading = { source: { log, codec, skips: noSkips }, folder, manifest, topic }
  const written = writeEvents({ ...reading, onPart: async () => {}, onDone: () => {} }, parts)
  await expect(written).rejects.toThrow('tidegate.sessions.v1/0 offset 2 cannot be read')
})

it.each([
  [{ ...request, format: 'csv' }, /has another export: it differs in format/],
  [{ ...request, filters: { ...filters, since: '7d', type: 'SessionScored' } }, /differs in since, type/],
] as const)('another export is refused in its folder: %j', async (other, problem) => {
  await append(1)
  await planned()
  await expect(findManifest(folder, other)).rejects.toThrow(problem)
})
