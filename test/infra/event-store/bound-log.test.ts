import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bindLog, refuseShorterLog, WrongLog } from '../../../infra/event-store/bound-log.ts'
import type { Position } from '../../../infra/log/port.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'

const topic = 'tidegate.collect.v1'
const logOf = (identity: string, end: number) => ({
  ensureTopics: async () => {},
  identity: async () => identity,
  endPositions: async (of: string): Promise<Position[]> => [{ topic: of, partition: 0, offset: end }],
})

describe('a database and its log', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase()
  })
  afterAll(() => database.drop())

  const bind = (identity: string, { end = 100, adopt = false } = {}) =>
    bindLog({ pool: database.pool, log: logOf(identity, end), topics: [], adopt })
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
    await expect(refuseShorterLog(database.pool, logOf('one', 0))).rejects.toThrow(WrongLog)
  })

  it('are bound anew by a command, never to a log that is shorter', async () => {
    await expect(bind('moved', { adopt: true, end: 49 })).rejects.toThrow(WrongLog)
    await bind('one')
    await bind('moved', { adopt: true })
    await bind('moved')
    await expect(bind('one')).rejects.toThrow(WrongLog)
  })
})
