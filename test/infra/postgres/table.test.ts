import { afterAll, beforeEach, expect, test } from 'vitest'
import { type Cte, runAsOneStatement } from '../../../infra/postgres/arrays.ts'
import {
  column,
  constrained,
  insertRows,
  loadRows,
  nullable,
  primaryKey,
  type RowOf,
  saveRows,
  table,
  untrustedText,
  writeRows,
} from '../../../infra/postgres/table.ts'
import { createTestDatabase } from '../../support/postgres.ts'

const pets = table(
  'pets',
  {
    id: primaryKey(column.id<`pet_${number}`>(), 'pet_id'),
    name: untrustedText(column.text()),
    kind: column.text<'cat' | 'dog'>(),
    born_at: column.bigint(),
    legs: column.integer(),
    is_chipped: column.boolean(),
    chip: nullable(column.bytea()),
    toys: nullable(column.json<{ name: string }[]>()),
  },
  {
    generated: {
      after: 'kind',
      ddl: 'kind_length integer generated always as (length(kind)) stored',
    },
  },
)
const visits = table(
  'visits',
  { pet_id: column.id(), at: column.bigint(), cost: nullable(column.integer()) },
  { key: ['pet_id', 'at'] },
)
const named = { ...column.bigint(), name: 'made_at' }
const cat: RowOf<typeof pets> = {
  id: 'pet_1',
  name: 'Mia',
  kind: 'cat',
  born_at: 1_760_000_000_000,
  legs: 4,
  is_chipped: true,
  chip: Buffer.from([0, 255]),
  toys: [{ name: 'ball \u0000 "quoted"' }],
}

const database = await createTestDatabase()
await database.pool.query(pets.ddl + visits.ddl)
beforeEach(() => database.pool.query('truncate pets, visits'))
afterAll(() => database.drop())

const run = (parts: Cte[]) => runAsOneStatement(database.pool, parts)
const found = async (...ids: `pet_${number}`[]) => [
  ...(await loadRows(database.pool, pets, { by: 'id', ids })).values(),
]

test('rows survive a round trip', async () => {
  const dog = { ...cat, id: 'pet_2', kind: 'dog', chip: null, toys: null } as const
  await run(saveRows(pets, [cat, dog]))
  expect(await found('pet_1', 'pet_2', 'pet_3')).toEqual([cat, dog])
})

test('NUL in untrusted text is replaced', async () => {
  await run(saveRows(pets, [{ ...cat, name: 'M\0ia' }]))
  expect(await found('pet_1')).toEqual([{ ...cat, name: 'M\ufffdia' }])
})

test('saving replaces all columns of a row with the same key', async () => {
  const visit = { pet_id: 'pet_1', at: 1, cost: 5 }
  await run(saveRows(visits, [visit, { ...visit, at: 2 }]))
  await run(saveRows(visits, [{ ...visit, cost: null }]))
  const { rows } = await database.pool.query(
    `select ${visits.select('v')} from visits v order by v.at`,
  )
  expect(rows).toEqual([
    { ...visit, cost: null },
    { ...visit, at: 2 },
  ])
})

test('inserting leaves existing rows unchanged', async () => {
  await run(saveRows(pets, [cat]))
  const second = { ...cat, id: 'pet_2' } as const
  await run(insertRows(pets, [{ ...cat, name: 'other' }, second, second]))
  expect(await found('pet_1', 'pet_2')).toEqual([cat, second])
})

test('select and selectWithout list the fields', async () => {
  await run(saveRows(pets, [cat]))
  const read = async (columns: string) =>
    (await database.pool.query(`select ${columns} from pets p`)).rows
  expect(await read(pets.select('p', 'id', 'born_at'))).toEqual([
    { id: cat.id, born_at: cat.born_at },
  ])
  const { chip: _, toys: __, ...others } = cat
  expect(await read(pets.selectWithout('p', 'chip', 'toys'))).toEqual([others])
  expect(pets.columnsWithout('chip', 'toys').map(({ name }) => name)).not.toContain('toys')
})

test('the DDL contains unlogged, storage parameters and indexes', async () => {
  const toys = table(
    'public.toys',
    {
      code: primaryKey(column.hex()),
      name: constrained(column.text(), "default 'ball'"),
      madeAt: named,
    },
    {
      unlogged: true,
      storage: 'fillfactor = 50',
      indexes: ['(name) where made_at > 0', '(made_at)'],
    },
  )
  expect(toys.ddl.split('\n').map((line) => line.trim())).toEqual([
    'create unlogged table public.toys (',
    'code bytea primary key,',
    "name text not null default 'ball',",
    'made_at bigint not null',
    ') with (fillfactor = 50);',
    'create index on public.toys (name) where made_at > 0;',
    'create index on public.toys (made_at);',
    '',
  ])
  await database.pool.query(toys.ddl)
  const rows = ['ff', '00'].map((code, i) => ({ code, madeAt: i, name: 'car' }))
  await run(
    writeRows(toys, { as: 'put', columns: toys.columnsOf('code', 'madeAt'), rows, ordered: true }),
  )
  await run(saveRows(toys, rows.slice(0, 1)))
  const { rows: found } = await database.pool.query(
    `select ${toys.select('t')} from public.toys t order by 1`,
  )
  expect(found).toEqual([
    { code: '00', name: 'ball', madeAt: 1 },
    { code: 'ff', name: 'car', madeAt: 0 },
  ])
})

test('no rows give no statement', () => {
  expect([...saveRows(visits, []), ...insertRows(visits, [])]).toEqual([])
})
