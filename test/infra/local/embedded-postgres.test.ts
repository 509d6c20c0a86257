import { expect, test } from 'vitest'
import { createTestDatabase } from '../../support/postgres.ts'

test('the embedded server speaks UTF-8, has the extensions we need and flushes each commit', async () => {
  const database = await createTestDatabase()
  await database.pool.query('create extension pg_trgm')
  const { rows } = await database.pool.query(
    "select lower('ÄÖ') as lower, current_setting('fsync') as fsync, current_setting('server_encoding') as encoding",
  )
  expect(rows[0]).toEqual({ lower: 'äö', fsync: 'on', encoding: 'UTF8' })
  await database.drop()
})
