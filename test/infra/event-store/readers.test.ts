import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { reapplyErasures } from '../../../infra/event-store/erasures.ts'
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
  return world.codec.toRecordWithCause({ type: 'RecordSkipped', data }, meta, testCause)
})
await log.append(facts)
afterAll(async () => {
  await skips.close()
  await world.close()
})

interface Running {
  status(): { topic: string; nextOffset: number; stopped: string | null }[]
  stop(): Promise<void>
}

/** Throws if a partition is stuck at the record. */
async function expectNotStuck(starting: Promise<Running>): Promise<void> {
  const running = await starting
  await log.settled()
  const status = running.status()
  await running.stop()
  const stopped = status.find((one) => one.stopped !== null)
  if (stopped) throw new Error(`${stopped.topic} is stuck: ${stopped.stopped}`)
  expect(status.length).toBeGreaterThan(0)
  for (const { topic, nextOffset } of status) expect([topic, nextOffset > 0]).toEqual([topic, true])
}

const readerDeps = (which: Skipping) => ({
  log,
  pool: world.database.pool,
  codec: world.codec,
  logger: silent,
  skips: which,
  clock: () => 1_800_000_000_000,
})
const noWaiters = { waitFor: async () => {}, onAdvance: () => () => {} }

async function runEach(which: Skipping): Promise<void> {
  const applied = await world.openApplied()
  for (const projection of projections)
    await expectNotStuck(runProjection({ ...readerDeps(which), projection, applied }))
}

async function rebuildEach(which: Skipping): Promise<void> {
  for (const projection of projections)
    expect(await rebuild({ ...readerDeps(which), projection })).toMatchObject({
      equal: true,
      switched: true,
    })
}

/** All readers of events, by file. They run in this order, and each depends on the data of the previous ones. */
const readers: Record<string, (which: Skipping) => Promise<unknown>> = {
  'infra/event-store/runner.ts': runEach,
  'infra/event-store/loader.ts': rebuildEach,
  'infra/event-store/erasures.ts': (which) =>
    reapplyErasures(world.database.pool, readerDeps(which), { since: 0 }),
  'services/scoring/restore.ts': (which) =>
    rebuildVisitors(readerDeps(which), { acceptDifferences: false }),
  'services/scoring/worker.ts': (which) =>
    expectNotStuck(
      runScoring({
        ...readerDeps(which),
        dataKeys: createMemoryDataKeys(),
        network: noNetwork,
        learned: taught,
        applied: noWaiters,
      }),
    ),
  'services/cli/export/events.ts': exportEvents,
  'services/webhooks/planner/planner.ts': (which) =>
    expectNotStuck(runPlanner({ ...readerDeps(which), applied: noWaiters })),
}

async function exportEvents(which: Skipping): Promise<void> {
  const everything = {
    since: 0,
    until: Number.MAX_SAFE_INTEGER,
    organizationId: null,
    environment: null,
  }
  const selection = { ...everything, topic: eventTopics.SessionScored, type: null, decrypts: false }
  await writeEvents(readerDeps(which), selection, { add: async () => {}, onProgress: () => {} })
}

describe.each(Object.entries(readers))('%s', (_, read) => {
  it('stops at an unreadable record unless it is skipped', async () => {
    await expect(read(noSkips)).rejects.toThrow()
    await read(skips)
  })
})

const textOf = (file: string) => readFileSync(file, 'utf8')
const calling = (name: string) =>
  sourceFiles().filter((file) => new RegExp(`(?<!function )\\b${name}\\(`).test(textOf(file)))

it('every caller of the reading functions is tested above', () => {
  const files = ['consumeEvents', 'readEvents', 'decodeEvents', 'decodeRecords'].flatMap(calling)
  // The consumer that readers use, the definitions, and a command that prints unreadable records as such.
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
