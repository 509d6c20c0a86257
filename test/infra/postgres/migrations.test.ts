import { afterAll, beforeEach, expect, test } from 'vitest'
import {
  type Migrations,
  PreReleaseTables,
  runMigrations,
} from '../../../infra/postgres/migrations.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { createTestDatabase } from '../../support/postgres.ts'

const database = await createTestDatabase()
beforeEach(() =>
  database.pool.query(`drop table if exists public.things;
    delete from tidegate.schema_migrations where name = 'things'`),
)
afterAll(() => database.drop())

const first: Migrations = {
  name: 'things',
  create: 'create table public.things (id integer primary key)',
}
const second: Migrations = {
  name: 'things',
  create: 'create table public.things (id integer primary key, name text)',
  changes: ['alter table public.things add column name text'],
}
const third: Migrations = {
  name: 'things',
  create: 'create table public.things (id integer primary key, name text, color text)',
  changes: [...(second.changes ?? []), 'alter table public.things add column color text'],
}
const run = (...all: Migrations[]) => transaction(database.pool, (tx) => runMigrations(tx, all))
const columns = async () => {
  const { rows } = await database.pool.query(
    `select column_name from information_schema.columns where table_name = 'things' order by ordinal_position`,
  )
  return rows.map((row) => row.column_name)
}

test('concurrent processes create the tables once', async () => {
  await Promise.all(Array.from({ length: 8 }, () => run(first)))
  expect(await columns()).toEqual(['id'])
})

test('a start takes no lock on tables in use', async () => {
  await run(first)
  await transaction(database.pool, async (tx) => {
    await tx.query('insert into public.things values (1)')
    // With a lock it would wait for the end of this transaction, forever.
    await run(first)
  })
})

test.each([{ from: [] }, { from: [first] }, { from: [second] }, { from: [first, second] }])(
  'a database with $from.length earlier versions is migrated to the newest one',
  async ({ from }) => {
    for (const version of from) await run(version)
    await run(third)
    expect(await columns()).toEqual(['id', 'name', 'color'])
  },
)

test('the version is dropped with the schema, so its tables are created again', async () => {
  const create = 'create table own.things (id integer)'
  const own: Migrations = { name: 'things', schema: 'own', create }
  await run(own)
  await database.pool.query('drop schema own cascade')
  await run(own)
  const { rows } = await database.pool.query('select number from own.schema_migrations')
  expect(rows).toEqual([{ number: 1 }])
  await database.pool.query('drop schema own cascade')
})

test('a failed step rolls everything back, including other tables', async () => {
  await run(first)
  const others = { name: 'others', create: 'create table public.others (id integer)' }
  const failing = 'alter table public.things add column name text; select 1 / 0'
  const broken = { ...second, changes: [failing] }
  await expect(run(others, broken)).rejects.toThrow('division by zero')
  expect(await columns()).toEqual(['id'])
  const { rows } = await database.pool.query(`select to_regclass('public.others') as others`)
  expect(rows).toEqual([{ others: null }])
})

test('a program of an earlier version starts on a newer database and leaves it unchanged', async () => {
  await run(third)
  await run(second)
  await run(first)
  expect(await columns()).toEqual(['id', 'name', 'color'])
  await run(third)
})

test('a database of a pre-release is refused and left unchanged', async () => {
  const old = await createTestDatabase({ empty: true })
  await old.pool.query(
    'create schema tidegate; create table tidegate.table_sets (name text, ddl_hash text)',
  )
  const start = () => transaction(old.pool, (tx) => runMigrations(tx, [first]))
  await expect(start()).rejects.toThrow(PreReleaseTables)
  await expect(start()).rejects.toThrow('created before 0.1.0, and no release')
  const { rows } = await old.pool.query("select to_regclass('public.things') as made")
  expect(rows).toEqual([{ made: null }])
  await old.drop()
})
