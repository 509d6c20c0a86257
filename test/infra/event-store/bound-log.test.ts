import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { bindLog } from '../../../infra/event-store/bound-log.ts'
import {
  readMarks,
  recordDamage,
  refuseDamage,
  refuseShorterLog,
  saveMarks,
  WrongLog,
} from '../../../infra/event-store/log-integrity.ts'
import type { Position } from '../../../infra/log/port.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'

const topic = 'tidegate.collect.v1'

interface Stored {
  end: number
  /** By offset; records that are missing have expired. */
  times?: Record<number, number>
}

const logOf = (identity: string, { end, times = {} }: Stored) => ({
  ensureTopics: async () => {},
  identity: async () => identity,
  endPositions: async (of: string): Promise<Position[]> => [{ topic: of, partition: 0, offset: end }],
  async positionsSince(of: string, time: number): Promise<Position[]> {
    const since = Object.entries(times).find(([, storedAt]) => storedAt >= time)
    return [{ topic: of, partition: 0, offset: Number(since?.[0] ?? end) }]
  },
})

describe('a database and its log', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase()
  })
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

  it('belong together from the first start on', async () => {
    await Promise.all([bind('one'), bind('one'), bind('one')])
    await bind('one')
    await expect(bind('other')).rejects.toThrow(/it was one, and the settings lead to other/)
  })

  it('are not taken for each other where the log is shorter than what was read of it', async () => {
    await readUpTo(50)
    await bind('one', { end: 50 })
    await expect(bind('one', { end: 49 })).rejects.toThrow(
      `The log ends at offset 49 of ${topic}/0, and it was read up to 50`,
    )
    await expect(refuseShorterLog(database.pool, logOf('one', { end: 0 }))).rejects.toThrow(WrongLog)
  })

  it('are bound anew by a command, never to a log that is shorter', async () => {
    await expect(bind('moved', { adopt: true, end: 49 })).rejects.toThrow(WrongLog)
    await bind('one')
    await bind('moved', { adopt: true })
    await bind('moved')
    await expect(bind('one')).rejects.toThrow(WrongLog)
  })

  describe('with marks', () => {
    const whole = { end: 100, times: { 97: 970, 98: 980, 99: 990 } }

    beforeEach(async () => {
      const { rows } = await database.pool.query<{ identity: string }>(
        'select identity from tidegate.bound_log',
      )
      await bind(rows[0]?.identity ?? '', { adopt: true })
      await database.pool.query('truncate tidegate.log_marks')
      await saveMarks(database.pool, await readMarks(logOf('moved', whole), { topics: [topic], time: 1000 }))
    })

    it('refuse a log that lost records, also when others have been appended since', async () => {
      const outgrown = { end: 120, times: { 97: 970, 98: 1010, 99: 1020, 119: 1030 } }
      await expect(bind('moved', outgrown)).rejects.toThrow(
        `Offset 98 of ${topic}/0 was stored after 1970-01-01T00:00:01.000Z, when the log had 100 already`,
      )
      const lastLost = { end: 100, times: { 97: 970, 98: 980, 99: 1010 } }
      await expect(bind('moved', lastLost)).rejects.toThrow(WrongLog)
    })

    it('take a log that has grown, and one whose records have expired', async () => {
      await bind('moved', { end: 120, times: { 97: 970, 98: 980, 99: 990, 100: 1000, 119: 1030 } })
      await bind('moved', { end: 120, times: { 119: 1030 } })
      await bind('moved', { end: 120 })
    })

    it('are older where a clock is ahead, and refuse nothing then', async () => {
      const ahead = { end: 101, times: { ...whole.times, 100: 9000 } }
      const marks = await readMarks(logOf('moved', ahead), { topics: [topic], time: 2000 })
      expect(marks).toEqual([{ topic, partition: 0, offset: 100, time: 2000 }])
      await saveMarks(database.pool, marks)
      await bind('moved', { end: 103, times: { ...ahead.times, 101: 2010, 102: 2020 } })
    })

    it('are kept as they were once damage was recorded, which the next healthy start forgets', async () => {
      const short = { end: 40, times: {} }
      const damage = await refuseShorterLog(database.pool, logOf('moved', short)).catch((error) => error)
      await recordDamage(database.pool, damage)
      await expect(refuseDamage(database.pool)).rejects.toThrow('The log ends at offset 40')
      await saveMarks(database.pool, [{ topic, partition: 0, offset: 40, time: Date.now() + 1000 }])
      // As many records as were read, and ten of them are later ones.
      const refilled = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [40 + i, Date.now() + i]))
      await expect(bind('moved', { end: 50, times: refilled })).rejects.toThrow(/Offset 40 of/)
      await expect(refuseDamage(database.pool)).rejects.toThrow(WrongLog)
      await bind('moved', whole)
      await refuseDamage(database.pool)
    })
  })
})
