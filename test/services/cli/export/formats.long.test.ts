import { readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ExportColumn, ExportRow } from '../../../../services/cli/export/columns.ts'
import {
  type ExportFormat,
  exportFormats,
  writeExport,
} from '../../../../services/cli/export/file.ts'
import { duckDb } from '../../../support/duckdb.ts'
import { needs } from '../../../support/needs.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'

const columns: ExportColumn[] = [
  { name: 'place', type: 'integer' },
  { name: 'said', type: 'text' },
  { name: 'asn', type: 'bigint' },
  { name: 'bot', type: 'boolean' },
  { name: 'seen', type: 'time' },
  { name: 'signals', type: 'texts' },
  { name: 'points', type: 'integers' },
  { name: 'data', type: 'json' },
]

const separators = ['', ' a ', 'a,b', 'a\r\nb', '\n', '\t', '"', '""', "'", '\\']
const text = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(...separators, 'null', '👩🏽‍🚀', '=1+1', 'é'),
)
// The writer of Parquet leaves a member of this name out.
const name = fc.string().filter((one) => one !== '__proto__')
const json = fc.oneof(
  fc.constant(null),
  fc.dictionary(name, fc.oneof(text, fc.integer(), fc.constant(null))),
)
const nullable = <T>(one: fc.Arbitrary<T>) => fc.option(one, { freq: 4 })
const row = fc.record({
  said: nullable(text),
  asn: nullable(fc.integer({ min: 0, max: 2 ** 32 })),
  bot: nullable(fc.boolean()),
  seen: nullable(fc.integer({ min: 0, max: 4_000_000_000_000 })),
  signals: nullable(fc.array(text, { maxLength: 4 })),
  points: nullable(fc.array(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { maxLength: 4 })),
  data: json,
})

const seed = Date.now() % 1_000_000
const rows: ExportRow[] = fc
  .sample(row, { numRuns: 25_000, seed })
  .map((one, place) => ({ ...one, place }))
const folder = temporaryFolder('formats')

console.log(`formats: seed ${seed}`)

async function written(format: ExportFormat, some: ExportRow[] = rows): Promise<string> {
  const file = path.join(folder, `rows.${format}`)
  await rm(file, { force: true })
  const count = await writeExport({ file, format, columns }, async (add) => {
    for (let i = 0; i < some.length; i += 7000) await add(some.slice(i, i + 7000))
  })
  expect(count).toBe(some.length)
  return file
}

/** Fields of RFC 4180; null where there is nothing. */
function parsedCsv(csv: string): (string | null)[][] {
  const lines: (string | null)[][] = [[]]
  for (const [, quoted, plain, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    lines.at(-1)?.push(quoted === undefined ? plain || null : quoted.replaceAll('""', '"'))
    if (end === '\r\n') lines.push([])
  }
  expect(lines.pop()).toEqual([])
  return lines
}

describe('rows of an export', () => {
  it('are in JSON lines what they were', async () => {
    const lines = (await readFile(await written('jsonl'), 'utf8')).split('\n')
    expect(lines.pop()).toBe('')
    const read = lines.map((line) => JSON.parse(line))
    expect(read.map(({ seen, ...one }) => ({ ...one, seen: seen && Date.parse(seen) }))).toEqual(
      rows.map(asJson),
    )
  })

  it('are in CSV what they were, with an apostrophe before what a spreadsheet would run', async () => {
    const [head, ...lines] = parsedCsv(await readFile(await written('csv'), 'utf8'))
    expect(head).toEqual(columns.map(({ name }) => name))
    const expected = rows.map((one) =>
      columns.map(({ name, type }) => {
        const value = one[name] ?? null
        if (value === null) return null
        if (type === 'time') return new Date(Number(value)).toISOString()
        if (typeof value === 'object') return JSON.stringify(value)
        return type === 'text' && /^[=+\-@＝＋－＠\t\r\n]/.test(String(value))
          ? `'${value}`
          : String(value)
      }),
    )
    expect(lines).toEqual(expected)
  })

  needs('python-duckdb').describe('in DuckDB', () => {
    it('have types for times, numbers and lists', async () => {
      const described = await duckDb<[string, string]>(
        `describe select * from '${await written('parquet')}'`,
      )
      expect(described.map(([name, type]) => [name, type])).toEqual([
        ['place', 'INTEGER'],
        ['said', 'VARCHAR'],
        ['asn', 'BIGINT'],
        ['bot', 'BOOLEAN'],
        ['seen', 'TIMESTAMP'],
        ['signals', 'VARCHAR[]'],
        ['points', 'INTEGER[]'],
        ['data', 'JSON'],
      ])
    })

    it('are in Parquet what they were', async () => {
      const file = await written('parquet')
      const read = await duckDb(
        `select place, said, asn, bot, epoch_ms(seen), signals, points, data from '${file}' order by place`,
      )
      const found = read.map((one) => [...one.slice(0, 7), parsed(one[7])])
      expect(found).toEqual(rows.map((one) => columns.map(({ name }) => one[name] ?? null)))
    })

    it.each(exportFormats)('are as many in %s, by its own reader', async (format) => {
      const file = await written(format)
      // Left to itself it takes each name in a document for a type of its own.
      const types = `{ said: 'VARCHAR', asn: 'BIGINT' }`
      const source = format === 'jsonl' ? `read_json('${file}', columns = ${types})` : `'${file}'`
      const [counted] = await duckDb(
        `select count(*), count(said), sum(asn)::bigint from ${source}`,
      )
      const sum = rows.reduce((total, { asn }) => total + Number(asn ?? 0), 0)
      const texts = rows.filter(({ said }) => said !== null && (format !== 'csv' || said !== ''))
      expect(counted).toEqual([rows.length, texts.length, sum])
    })

    it('may be none', async () => {
      expect(await duckDb(`select count(*) from '${await written('parquet', [])}'`)).toEqual([[0]])
    })
  })
})

const parsed = (value: unknown) => (typeof value === 'string' ? JSON.parse(value) : value)
const asJson = (one: ExportRow) => JSON.parse(JSON.stringify(one))
