import pino from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { AppliedOffsets } from '../../../infra/event-store/applied.ts'
import { lastPositions, waitForRecords } from '../../../infra/event-store/catch-up.ts'
import { rebuild } from '../../../infra/event-store/rebuild.ts'
import { type RunningProjection, runProjection } from '../../../infra/event-store/runner.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { sessionsProjection as projection } from '../../../projections/sessions/projection.ts'
import { decisions } from '../../projections/world-events.ts'
import { noSkips } from '../../support/no-skips.ts'
import {
  ensureTopics,
  openProjectionWorld,
  type ProjectionWorld,
  silent,
} from '../../support/projections.ts'

const topic = 'tidegate.sessions.v1'

function createErrorLogger() {
  const errors: Record<string, unknown>[] = []
  const logger = pino({ level: 'error' }, { write: (line) => void errors.push(JSON.parse(line)) })
  return { errors, logger }
}

let world: ProjectionWorld
let log: EventLog
beforeEach(async () => {
  world = await openProjectionWorld()
  log = await openPostgresLog({ ...world.database, logger: silent })
  await ensureTopics(log)
})
afterEach(async () => {
  await log.close()
  await world.close()
})

const sources = () => {
  const { codec, database } = world
  return { projection, log, pool: database.pool, codec, logger: silent, skips: noSkips }
}
const expire = () =>
  world.database.pool.query('delete from tidegate_log.records where topic = $1', [topic])

async function waitForAll(applied: AppliedOffsets): Promise<void> {
  const records = lastPositions(await log.endPositions(topic))
  await waitForRecords(world.database.pool, {
    applied,
    projection: projection.name,
    records,
    timeoutMs: 2000,
  })
}

async function whileRunning(work: (running: RunningProjection) => Promise<void>) {
  const { errors, logger } = createErrorLogger()
  const applied = await world.openApplied()
  let expired = 0
  const running = await runProjection({
    ...sources(),
    applied,
    logger,
    onExpired(records) {
      expired += records
    },
  })
  try {
    await expect.poll(() => waitForAll(applied).then(() => 'caught up', String)).toBe('caught up')
    await work(running)
  } finally {
    await running.stop()
  }
  return { errors, expired }
}

test('expired records are logged per partition and counted, and waiters skip them', async () => {
  const read = await world.append(log, decisions(1, 10))
  expect(await whileRunning(async () => {})).toEqual({ errors: [], expired: 0 })
  const unread = await world.append(log, decisions(11, 40))
  await expire()
  const { errors, expired } = await whileRunning(async (running) => {
    const more = await world.append(log, decisions(50, 59))
    await (await world.openApplied()).waitFor(projection.name, more)
    expect(running.status().every(({ stopped }) => stopped === null)).toBe(true)
  })
  expect(expired).toBe(unread.length)
  const partitions = new Set(unread.map(({ partition }) => partition))
  expect(errors).toHaveLength(partitions.size)
  for (const error of errors) {
    const inIt = (some: typeof read) => some.filter((one) => one.partition === error.partition)
    const [from, records] = [inIt(read).length, inIt(unread).length]
    const msg = 'records expired before projection sessions read them'
    const consumer = 'projection sessions'
    expect(error).toMatchObject({ msg, consumer, topic, from, records, to: from + records })
  }
  expect(await whileRunning(async () => {})).toEqual({ errors: [], expired: 0 })
})

test('a new read model does not wait for expired records', async () => {
  await world.append(log, decisions(1, 10))
  await expire()
  expect(await whileRunning(async () => {})).toEqual({ errors: [], expired: 0 })
})

test('a rebuild does not wait for expired records', async () => {
  await world.append(log, decisions(1, 10))
  await whileRunning(async () => {})
  await expire()
  const report = await rebuild({ ...sources(), acceptDifferences: true })
  expect(report).toMatchObject({ records: 0, switched: true })
})
