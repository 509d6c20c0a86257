import { afterAll, expect, test } from 'vitest'
import {
  arrayLiteral,
  arrayParameter,
  type Column,
  type Element,
  type ElementType,
  unnest,
} from '../../../infra/postgres/arrays.ts'
import { createTestDatabase } from '../../support/postgres.ts'

const database = await createTestDatabase()
afterAll(() => database.drop())

async function roundTrip(type: ElementType, elements: Element[]): Promise<unknown[]> {
  const { rows } = await database.pool.query(`select v from unnest($1::${type}[]) v`, [
    arrayParameter(type, elements),
  ])
  return rows.map((row) => row.v)
}

test.each<[ElementType, Element[]]>([
  ['text', ['', 'a', 'NULL', '"quoted" \\ {x,y}', 'ä 漢 🙂', '\n\t', null]],
  ['integer', [0, -1, 2_147_483_647, -2_147_483_648, null]],
  ['boolean', [true, false, null]],
  ['bytea', [Buffer.alloc(0), Buffer.from([0, 255, 92]), null]],
  ['text', []],
])('%s survives a round trip: %j', async (type, elements) => {
  expect(await roundTrip(type, elements)).toEqual(elements)
})

test('bigint survives a round trip', async () => {
  const values = [0, -1, 1_760_000_000_000, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]
  expect(await roundTrip('bigint', [...values, null])).toEqual([...values.map(String), null])
})

test('a lone surrogate becomes a replacement character', async () => {
  expect(await roundTrip('text', ['a\ud800b'])).toEqual(['a\ufffdb'])
})

test('a value of another type throws', () => {
  expect(() => arrayParameter('integer', [true])).toThrow(TypeError)
  expect(() => arrayParameter('integer', [2 ** 31])).toThrow(RangeError)
})

test('packed columns arrive like unpacked ones', async () => {
  const texts = ['', 'a', 'NULL', '{}', '"quoted" \\ {x,y}', ' ä 漢 🙂 ', '\n\t', null]
  const rows = texts.map((text, i) => ({
    text,
    number: i - 3,
    flag: i % 2 === 0,
    list: ['', `"${i}"`, 'a,b'],
  }))
  const columns: Column<(typeof rows)[number]>[] = [
    { name: 'own', type: 'text', encode: ({ text }) => text },
    { name: 'text', type: 'text', isPacked: true, encode: ({ text }) => text },
    { name: 'number', type: 'bigint', isPacked: true, encode: ({ number }) => number },
    { name: 'last_flag', type: 'boolean', encode: ({ flag }) => flag },
    { name: 'flag', type: 'boolean', isPacked: true, encode: ({ flag }) => flag },
    {
      name: 'list',
      type: 'text',
      cast: 'text[]',
      isPacked: true,
      encode: ({ list }) => arrayLiteral(list),
    },
  ]
  const { names, source, values } = unnest(columns, rows)
  const { rows: read } = await database.pool.query(
    `select * from ${source} as t (${names})`,
    values,
  )
  expect(read).toEqual(
    rows.map((row) => ({ ...row, own: row.text, last_flag: row.flag, number: String(row.number) })),
  )
})
