import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { reapplyErasures } from '../../../infra/event-store/erased.ts'
import { rebuild } from '../../../infra/event-store/rebuild.ts'
import { runProjection } from '../../../infra/event-store/runner.ts'
import { createSkips, type Skips } from '../../../infra/event-store/skips.ts'
import { noNetwork } from '../../../infra/ip/network.ts'
import { causedNames, eventTopics } from '../../../schemas/events.ts'
import { writeEvents } from '../../../services/cli/export/events.ts'
import { rebuildVisitors } from '../../../services/scoring/restore.ts'
import { runScoring } from '../../../services/scoring/worker.ts'
import { projections } from '../../../services/server/dependencies.ts'
import { runPlanner } from '../../../services/webhooks/planner/planner.ts'
import { taught } from '../../services/scoring/support/taught.ts'
import { sourceFiles } from '../../structure/imports.ts'
import { createMemoryDataKeys } from '../../support/memory-data-keys.ts'
import { createMemoryLog } from '../../support/memory-log.ts'
import { noSkips } from '../../support/no-skips.ts'
import { openProjectionWorld, silent, testCause } from '../../support/projections.ts'

type Skipping = Pick<Skips, 'has'>

const world = await openProjectionWorld()
const log = createMemoryLog()
const skips = createSkips({ log, codec: world.codec, logger: silent })
const topics = [...new Set(Object.values(eventTopics))]
// An event type that every read model of the topic applies.
const typeIn = (topic: string) =>
  [...causedNames, ...Object.keys(eventTopics)].find((name) => Object(eventTopics)[name] === topic)
const positions = await log.append(
  topics.map((topic) => ({
    topic,
    key: 'x',
    value: Buffer.from('not ours'),
    headers: { event_type: typeIn(topic) ?? '' },
  })),
)
const facts = positions.map(({ topic, partition, offset }) => {
  const data = {
    skipped_topic: topic,
    skipped_partition: partition,
    skipped_offset: offset,
    reason: 'a typo',
    skipped_by: 'Ada',
    skipped_at: 1,
    why_unreadable: 'not ours',
    record_key: 'x',
    record_headers: {},
    record_value: Buffer.from('not ours'),
  }
  const meta = { eventId: `skip_${topic}`, time: 1, organizationId: null, environment: null }
  return world.codec.toCausedRecord({ type: 'RecordSkipped', data }, meta, testCause)
})
await log.append(facts)
afterAll(async () => {
  await skips.close()
  await world.close()
})

interface Standing {
  status(): { topic: string; nextOffset: number; stopped: string | null }[]
  stop(): Promise<void>
}

/** Throws where a partition stands still at the record. */
async function passes(starting: Promise<Standing>): Promise<void> {
  const running = await starting
  await log.settled()
  const status = running.status()
  await running.stop()
  const stopped = status.find((one) => one.stopped !== null)
  if (stopped) throw new Error(`${stopped.topic} stands still: ${stopped.stopped}`)
  expect(status.length).toBeGreaterThan(0)
  for (const { topic, nextOffset } of status) expect([topic, nextOffset > 0]).toEqual([topic, true])
}

const given = (which: Skipping) => ({
  log,
  pool: world.database.pool,
  codec: world.codec,
  logger: silent,
  skips: which,
  clock: () => 1_800_000_000_000,
})
const nobodyWaits = { waitFor: async () => {}, onAdvance: () => () => {} }

async function runEach(which: Skipping): Promise<void> {
  const applied = await world.openApplied()
  for (const projection of projections)
    await passes(runProjection({ ...given(which), projection, applied }))
}

async function rebuildEach(which: Skipping): Promise<void> {
  for (const projection of projections)
    expect(await rebuild({ ...given(which), projection })).toMatchObject({
      equal: true,
      switched: true,
    })
}

/** Whatever reads events of a topic, by its file, in an order in which each finds what the one before left. */
const readers: Record<string, (which: Skipping) => Promise<unknown>> = {
  'infra/event-store/runner.ts': runEach,
  'infra/event-store/loader.ts': rebuildEach,
  'infra/event-store/erased.ts': (which) =>
    reapplyErasures(world.database.pool, given(which), { since: 0 }),
  'services/scoring/restore.ts': (which) =>
    rebuildVisitors(given(which), { acceptDifferences: false }),
  'services/scoring/worker.ts': (which) =>
    passes(
      runScoring({
        ...given(which),
        dataKeys: createMemoryDataKeys(),
        network: noNetwork,
        learned: taught,
        applied: nobodyWaits,
      }),
    ),
  'services/cli/export/events.ts': exportEvents,
  'services/webhooks/planner/planner.ts': (which) =>
    passes(runPlanner({ ...given(which), applied: nobodyWaits })),
}

async function exportEvents(which: Skipping): Promise<void> {
  const everything = {
    since: 0,
    until: Number.MAX_SAFE_INTEGER,
    organizationId: null,
    environment: null,
  }
  const selection = { ...everything, topic: eventTopics.SessionScored, type: null, decrypts: false }
  await writeEvents(given(which), selection, { add: async () => {}, onProgress: () => {} })
}

describe.each(Object.entries(readers))('%s', (_, read) => {
  it('stops at a record that cannot be read, and passes one that is skipped', async () => {
    await expect(read(noSkips)).rejects.toThrow()
    await read(skips)
  })
})

const textOf = (file: string) => readFileSync(file, 'utf8')
const calling = (name: string) =>
  sourceFiles().filter((file) => new RegExp(`(?<!function )\\b${name}\\(`).test(textOf(file)))

it('each reader has a test: their functions cannot be called without saying what is skipped', () => {
  const files = ['consumeEvents', 'readEvents', 'decodeEvents', 'decodeRecords'].flatMap(calling)
  // The one by which the others read, its own definition, and one that prints what cannot be read as such.
  const others = [
    'infra/event-store/consumer.ts',
    'infra/event-store/event-batch.ts',
    'infra/event-store/read-events.ts',
    'services/cli/events.ts',
  ]
  expect([...new Set(files)].filter((file) => !others.includes(file)).sort()).toEqual(
    Object.keys(readers).sort(),
  )
})
