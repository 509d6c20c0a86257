import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { LogUnavailable } from '../../../infra/log/port.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { retireLog } from '../../../infra/log/postgres/retire.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { createTestDatabase } from '../../support/postgres.ts'

const topic = 'topic'

const database = await createTestDatabase()
const log = await openPostgresLog({ ...database, logger: pino({ level: 'silent' }) })
await log.ensureTopics([{ topic, partitions: 2 }])

afterAll(async () => {
  await log.close()
  await database.drop()
})

const append = () => log.append([{ topic, key: 'a', value: Buffer.from('1'), headers: {} }])

test('a log with new records is not retired; a retired one rejects appends, also waiting ones', async () => {
  await append()
  const ends = await log.endPositions(topic)
  await append()
  await expect(transaction(database.pool, (tx) => retireLog(tx, ends))).rejects.toThrow(
    /Stop every server/,
  )
  await append()
  const now = await log.endPositions(topic)
  let waiting: Promise<unknown> = Promise.resolve()
  await transaction(database.pool, async (tx) => {
    await retireLog(tx, now)
    waiting = append()
    waiting.catch(() => {})
    await waitingForLock()
  })
  await expect(waiting).rejects.toThrow(LogUnavailable)
  await expect(append()).rejects.toThrow(LogUnavailable)
  const { rows } = await database.pool.query(
    'select count(*)::int as count from tidegate_log.records',
  )
  expect(rows).toEqual([{ count: 3 }])
})

async function waitingForLock(): Promise<void> {
  const { rows } = await database.pool.query(
    `select from pg_locks where not granted and relation = 'tidegate_log.partitions'::regclass`,
  )
  if (rows.length === 0) await waitingForLock()
}
