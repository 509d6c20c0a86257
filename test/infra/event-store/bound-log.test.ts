import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import {
  bindLog,
  checkAndMoveWatermarks,
  refuseShorterLog,
  verifyLog,
  WrongLog,
} from '../../../infra/event-store/bound-log.ts'
import type { Position } from '../../../infra/log/port.ts'
import { createTestDatabase } from '../../support/postgres.ts'

const topic = 'tidegate.collect.v1'

interface Stored {
  end: number
  /** Times by offset. Missing records have expired. */
  times?: Record<number, number>
}

const logOf = (identity: string, { end, times = {} }: Stored) => ({
  ensureTopics: async () => {},
  identity: async () => identity,
  endPositions: async (of: string): Promise<Position[]> => [
    { topic: of, partition: 0, offset: end },
  ],
  async positionsSince(of: string, time: number): Promise<Position[]> {
    const since = Object.entries(times).find(([, storedAt]) => storedAt >= time)
    return [{ topic: of, partition: 0, offset: Number(since?.[0] ?? end) }]
  },
})

const database = await createTestDatabase()
afterAll(() => database.drop())

const bind = (
  identity: string,
  { end = 100, adopt = false, times }: Partial<Stored> & { adopt?: boolean } = {},
) =>
  bindLog({
    pool: database.pool,
    log: logOf(identity, { end, ...(times && { times }) }),
    topics: [],
    adopt,
  })
const readUpTo = (offset: number) =>
  database.pool.query(
    `insert into scoring.offsets (topic, partition, next_offset) values ($1, 0, $2)
       on conflict (topic, partition) do update set next_offset = excluded.next_offset`,
    [topic, offset],
  )

it('the first start binds the database to its log', async () => {
  await Promise.all([bind('one'), bind('one'), bind('one')])
  await bind('one')
  await expect(bind('other')).rejects.toThrow(
    /it was filled from one, and the settings point to other/,
  )
})

it('binding fails if the log is shorter than the stored offsets', async () => {
  await readUpTo(50)
  await bind('one', { end: 50 })
  await expect(bind('one', { end: 49 })).rejects.toThrow(
    `The log ends at offset 49 of ${topic}/0, but was already read up to 50`,
  )
  await expect(refuseShorterLog(database.pool, logOf('one', { end: 0 }))).rejects.toThrow(WrongLog)
})

it('adopt rebinds the database, but never to a shorter log', async () => {
  await expect(bind('moved', { adopt: true, end: 49 })).rejects.toThrow(WrongLog)
  await bind('one')
  await bind('moved', { adopt: true })
  await bind('moved')
  await expect(bind('one')).rejects.toThrow(WrongLog)
})

describe('with watermarks', () => {
  const now = Date.now()
  const later = now + 3_600_000
  const whole = { end: 100, times: { 97: now - 3, 98: now - 2, 99: now - 1 } }

  beforeEach(async () => {
    const { rows } = await database.pool.query<{ identity: string }>(
      'select identity from tidegate.bound_log',
    )
    await bind(rows[0]?.identity ?? '', { adopt: true })
    await checkAndMoveWatermarks(database.pool, logOf('moved', whole), [topic])
  })

  it('binding fails if the log has lost records, even if others were appended since', async () => {
    const outgrown = { end: 120, times: { 97: now - 3, 98: later, 99: later, 119: later } }
    const truncated =
      /The log had 100 records in tidegate\.collect\.v1\/0 at .*, and now has 98 from before that time: it was truncated/
    await expect(bind('moved', outgrown)).rejects.toThrow(truncated)
    await expect(
      checkAndMoveWatermarks(database.pool, logOf('moved', outgrown), [topic]),
    ).rejects.toThrow(WrongLog)
    const lastLost = { end: 100, times: { 97: now - 3, 98: now - 2, 99: later } }
    await expect(bind('moved', lastLost)).rejects.toThrow(WrongLog)
  })

  it('binding succeeds if the log has grown or records have expired', async () => {
    await bind('moved', { end: 120, times: { ...whole.times, 100: later, 119: later } })
    await bind('moved', { end: 120, times: { 119: later } })
    await bind('moved', { end: 120 })
  })

  it('binding succeeds if a clock was ahead', async () => {
    const ahead = { end: 101, times: { ...whole.times, 100: later } }
    await checkAndMoveWatermarks(database.pool, logOf('moved', ahead), [topic])
    await bind('moved', { end: 103, times: { ...ahead.times, 101: Date.now(), 102: Date.now() } })
  })

  it('stored damage keeps the watermarks and the error until a healthy start', async () => {
    const verify = (stored: Stored) => verifyLog(database.pool, logOf('moved', stored), [topic])
    const lost = /The log had 100 records in .*, and now has 98 from before that time/
    await expect(verify({ end: 98 })).rejects.toThrow(lost)
    await expect(verify(whole)).rejects.toThrow(lost)
    await checkAndMoveWatermarks(database.pool, logOf('moved', { end: 200 }), [topic])
    await expect(verify(whole)).rejects.toThrow(lost)
    await bind('moved', whole)
    await verify(whole)
  })
})
