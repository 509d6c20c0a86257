import { beforeEach, expect, it } from 'vitest'
import { createCodec } from '../../../../infra/event-store/codec.ts'
import type { ExportRow } from '../../../../services/cli/export/columns.ts'
import { writeEvents } from '../../../../services/cli/export/events.ts'
import type { EventSelection } from '../../../../services/cli/export/selection.ts'
import { createMemoryLog } from '../../../support/memory-log.ts'
import { noSkips } from '../../../support/no-skips.ts'
import { metaOf, sessionScored } from '../../../support/session-scored.ts'

const topic = 'tidegate.sessions.v1'
const codec = createCodec()
let now = 0
let log = createMemoryLog()

beforeEach(() => {
  now = 0
  log = createMemoryLog({ now: () => now })
})

/** Appends events, each recorded one minute after the previous one. */
async function append(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    now += 60_000
    const data = sessionScored({ event_id: `evt_${now}` })
    await log.append([codec.toRecord({ type: 'SessionScored', data }, metaOf(data))])
  }
}

const everything: EventSelection = {
  topic,
  type: null,
  since: 0,
  until: Number.MAX_SAFE_INTEGER,
  organizationId: null,
  environment: null,
  decrypts: false,
}

async function offsets(selection: Partial<EventSelection> = {}, onAdd = async () => {}) {
  const rows: ExportRow[] = []
  const progress: [number, number][] = []
  await writeEvents(
    { log, codec, skips: noSkips },
    { ...everything, ...selection },
    {
      async add(added) {
        rows.push(...added)
        await onAdd()
      },
      onProgress: (done, total) => progress.push([done, total]),
    },
  )
  return { offsets: rows.map(({ offset }) => offset), progress: progress.at(-1) }
}

it('exports the events that were in the log at the start', async () => {
  await append(2500)
  let more = 0
  const exported = await offsets({}, async () => {
    if (more++ === 0) await append(5)
  })
  expect(exported.offsets).toEqual(Array.from({ length: 2500 }, (_, offset) => offset))
  expect(exported.progress).toEqual([2500, 2500])
})

it('exports only events recorded in the selected time', async () => {
  await append(12)
  const exported = await offsets({ since: 3 * 60_000, until: 6 * 60_000 })
  expect(exported.offsets).toEqual([2, 3, 4])
})

it.each([{ type: 'SessionErased' }, { environment: 'test' }, { organizationId: 'org_x' }])(
  'exports only selected events: %j',
  async (selection) => {
    await append(1)
    expect((await offsets(selection)).offsets).toEqual([])
  },
)

it('exports no rows from an empty topic', async () => {
  expect((await offsets()).offsets).toEqual([])
})

it('fails at an unreadable record and names its position', async () => {
  await append(2)
  await log.append([{ topic, key: 'x', value: Buffer.from('not ours'), headers: {} }])
  await expect(offsets()).rejects.toThrow('tidegate.sessions.v1/0 offset 2 cannot be read')
})
