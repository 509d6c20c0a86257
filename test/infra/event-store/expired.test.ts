import pino from 'pino'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { catchUp, lastBefore } from '../../../infra/event-store/catch-up.ts'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { consumeEvents } from '../../../infra/event-store/consumer.ts'
import { rebuild } from '../../../infra/event-store/rebuild.ts'
import { type RunningProjection, runProjection } from '../../../infra/event-store/runner.ts'
import type { Batch, ConsumeOptions, EventLog } from '../../../infra/log/port.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { sessionsProjection as projection } from '../../../projections/sessions/projection.ts'
import { decisions } from '../../projections/world-events.ts'
import { createMemoryLog } from '../../support/memory-log.ts'
import { noSkips } from '../../support/no-skips.ts'
import {
  ensureTopics,
  openProjectionWorld,
  type ProjectionWorld,
  silent,
} from '../../support/projections.ts'

const topic = 'tidegate.sessions.v1'

function notingErrors() {
  const errors: Record<string, unknown>[] = []
  const logger = pino({ level: 'error' }, { write: (line) => void errors.push(JSON.parse(line)) })
  return { errors, logger }
}

describe('records that expired before a read model was there', () => {
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

  const expire = () =>
    world.database.pool.query('delete from tidegate_log.records where topic = $1', [topic])

  async function waitForAll(applied: Applied): Promise<void> {
    const records = lastBefore(await log.endPositions(topic))
    await catchUp(world.database.pool, {
      applied,
      projection: projection.name,
      records,
      timeoutMs: 2000,
    })
  }

  async function whileRunning(work: (running: RunningProjection) => Promise<void>) {
    const { errors, logger } = notingErrors()
    const applied = await world.openApplied()
    let expired = 0
    const running = await runProjection({
      projection,
      log,
      pool: world.database.pool,
      codec: world.codec,
      applied,
      logger,
      skips: noSkips,
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

  test('are an error line for each partition and a count, and nobody waits for them', async () => {
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
      const { partition, from, to, records } = error
      expect(error).toMatchObject({
        msg: 'records expired before projection sessions read them',
        consumer: 'projection sessions',
        topic,
      })
      expect(from).toBe(read.filter((one) => one.partition === partition).length)
      expect(records).toBe(unread.filter((one) => one.partition === partition).length)
      expect(to).toBe(Number(from) + Number(records))
    }
    expect(await whileRunning(async () => {})).toEqual({ errors: [], expired: 0 })
  })

  test('are nothing that a new read model waits for', async () => {
    await world.append(log, decisions(1, 10))
    await expire()
    expect(await whileRunning(async () => {})).toEqual({ errors: [], expired: 0 })
  })

  test('are nothing that a rebuild waits for', async () => {
    await world.append(log, decisions(1, 10))
    await whileRunning(async () => {})
    await expire()
    const { pool } = world.database
    const sources = { projection, log, pool, codec: world.codec, logger: silent, skips: noSkips }
    expect(await rebuild({ ...sources, acceptDifferences: true })).toMatchObject({
      records: 0,
      switched: true,
    })
  })
})

test('records that expire in front of a consumer that is behind are counted once', async () => {
  const { errors, logger } = notingErrors()
  const memory = createMemoryLog()
  let consume: ConsumeOptions | undefined
  let first = 0
  const log: EventLog = {
    ...memory,
    firstPositions: async () => [{ topic, partition: 0, offset: first }],
    async consume(options) {
      consume = options
      await options.startOffset?.(topic, 0)
      return { stop: async () => {} }
    },
  }
  let expired = 0
  let isAway = true
  const clock = { ms: 0 }
  await consumeEvents({
    who: 'scoring',
    group: 'scoring',
    topics: [topic],
    log,
    logger,
    skips: noSkips,
    clock: () => clock.ms,
    codec: createCodec(),
    types: new Set<string>(),
    startOffset: async () => 2,
    onExpired(records) {
      expired += records
    },
    async apply(batches) {
      if (isAway) throw new Error('the database is away')
      return batches.map(({ end }) => ({ topic, partition: 0, offset: end }))
    },
  })
  const record = (offset: number) => ({
    topic,
    partition: 0,
    offset,
    key: 'k',
    value: Buffer.alloc(0),
    headers: {},
    timestamp: 0,
  })
  const batch = (...offsets: number[]): Batch => ({
    topic,
    partition: 0,
    records: offsets.map(record),
  })
  first = 7
  clock.ms = 2000
  // Offset 7 is missing for another reason.
  await consume?.handle([batch(8, 9)])
  await consume?.handle([batch(8, 9)])
  isAway = false
  await consume?.handle([batch(8, 9)])
  await consume?.handle([batch(10, 12)])
  expect(expired).toBe(5)
  expect(errors).toEqual([expect.objectContaining({ from: 2, to: 7, records: 5 })])
})
