import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureTables } from '../../../infra/postgres/ensure-tables.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database?.drop())

const ddl = `
  create table if not exists public.things (id integer primary key);
  alter table public.things add column if not exists name text;
  create index if not exists things_name on public.things (name);
`
const ensure = (text = ddl) =>
  transaction(database.pool, (tx) => ensureTables(tx, { name: 'things', table: 'public.things', ddl: text }))
const columns = async () => {
  const { rows } = await database.pool.query(
    `select column_name from information_schema.columns where table_name = 'things' order by 1`,
  )
  return rows.map((row) => row.column_name)
}

test('many processes at once make the tables once', async () => {
  await Promise.all(Array.from({ length: 8 }, () => ensure()))
  expect(await columns()).toEqual(['id', 'name'])
})

test('a process that starts takes no lock on tables that another one works with', async () => {
  await ensure()
  await transaction(database.pool, async (tx) => {
    await tx.query("insert into public.things values (1, 'held')")
    // Would wait for the end of this transaction, and so for ever.
    await ensure()
  })
})

test('other statements are run, and all are when the tables are gone', async () => {
  await ensure(`${ddl} alter table public.things add column if not exists color text;`)
  expect(await columns()).toEqual(['color', 'id', 'name'])
  await database.pool.query('drop table public.things')
  await ensure(`${ddl} alter table public.things add column if not exists color text;`)
  expect(await columns()).toEqual(['color', 'id', 'name'])
})
