import { pino } from 'pino'
import { expect, test } from 'vitest'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { deleteExpired } from '../../../infra/log/postgres/retention.ts'
import { createTestDatabase } from '../../support/postgres.ts'

test('deletes what is older than its topic keeps, and nothing else; offsets go on', async () => {
  const { pool, url, drop } = await createTestDatabase()
  const log = await openPostgresLog({ pool, url, logger: pino({ level: 'silent' }) })
  const record = (topic: string) => ({ topic, key: 'a', value: Buffer.from('x'), headers: {} })
  await log.ensureTopics([
    { topic: 'days', partitions: 1, retentionMs: 60_000 },
    { topic: 'forever', partitions: 1 },
  ])
  await log.append(['days', 'days', 'forever'].map(record))
  await pool.query('update tidegate_log.records set stored_at = stored_at - 120000')
  await log.append([record('days')])
  expect(await deleteExpired(pool, 'tidegate_log')).toBe(2)
  const { rows } = await pool.query('select topic, "offset"::int from tidegate_log.records order by 1')
  expect(rows).toEqual([
    { topic: 'days', offset: 2 },
    { topic: 'forever', offset: 0 },
  ])
  const [position] = await log.append([record('days')])
  expect(position?.offset).toBe(3)
  await log.close()
  await drop()
})
