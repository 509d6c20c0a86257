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
  { name: 'comment', type: 'text' },
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
// The Parquet writer drops members with this name.
const name = fc.string().filter((item) => item !== '__proto__')
const json = fc.oneof(
  fc.constant(null),
  fc.dictionary(name, fc.oneof(text, fc.integer(), fc.constant(null))),
)
const nullable = <T>(item: fc.Arbitrary<T>) => fc.option(item, { freq: 4 })
const row = fc.record({
  comment: nullable(text),
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
  .map((item, place) => ({ ...item, place }))
const folder = temporaryFolder('formats')

console.log(`formats: seed ${seed}`)

async function written(format: ExportFormat, exported: ExportRow[] = rows): Promise<string> {
  const file = path.join(folder, `rows.${format}`)
  await rm(file, { force: true })
  const count = await writeExport({ file, format, columns }, async (add) => {
    for (let i = 0; i < exported.length; i += 7000) await add(exported.slice(i, i + 7000))
  })
  expect(count).toBe(exported.length)
  return file
}

/** Parses CSV (RFC 4180). An empty field without quotes is null. */
function parsedCsv(csv: string): (string | null)[][] {
  const lines: (string | null)[][] = [[]]
  for (const [, quoted, plain, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    lines.at(-1)?.push(quoted === undefined ? plain || null : quoted.replaceAll('""', '"'))
    if (end === '\r\n') lines.push([])
  }
  expect(lines.pop()).toEqual([])
  return lines
}

describe('an export', () => {
  it('round-trips through JSON lines', async () => {
    const lines = (await readFile(await written('jsonl'), 'utf8')).split('\n')
    expect(lines.pop()).toBe('')
    const read = lines.map((line) => JSON.parse(line))
    expect(read.map(({ seen, ...item }) => ({ ...item, seen: seen && Date.parse(seen) }))).toEqual(
      rows.map(asJson),
    )
  })

  it('round-trips through CSV, with an apostrophe before formulas', async () => {
    const [head, ...lines] = parsedCsv(await readFile(await written('csv'), 'utf8'))
    expect(head).toEqual(columns.map(({ name }) => name))
    const expected = rows.map((item) =>
      columns.map(({ name, type }) => {
        const value = item[name] ?? null
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
    it('has column types for times, numbers and lists', async () => {
      const described = await duckDb<[string, string]>(
        `describe select * from '${await written('parquet')}'`,
      )
      expect(described.map(([name, type]) => [name, type])).toEqual([
        ['place', 'INTEGER'],
        ['comment', 'VARCHAR'],
        ['asn', 'BIGINT'],
        ['bot', 'BOOLEAN'],
        ['seen', 'TIMESTAMP'],
        ['signals', 'VARCHAR[]'],
        ['points', 'INTEGER[]'],
        ['data', 'JSON'],
      ])
    })

    it('round-trips through Parquet', async () => {
      const file = await written('parquet')
      const read = await duckDb(
        `select place, comment, asn, bot, epoch_ms(seen), signals, points, data from '${file}' order by place`,
      )
      const readRows = read.map((item) => [...item.slice(0, 7), parsed(item[7])])
      expect(readRows).toEqual(rows.map((item) => columns.map(({ name }) => item[name] ?? null)))
    })

    it.each(exportFormats)('has the same counts in %s', async (format) => {
      const file = await written(format)
      // Without column types, DuckDB would infer a separate type for each document.
      const types = `{ comment: 'VARCHAR', asn: 'BIGINT' }`
      const source = format === 'jsonl' ? `read_json('${file}', columns = ${types})` : `'${file}'`
      const [counted] = await duckDb(
        `select count(*), count(comment), sum(asn)::bigint from ${source}`,
      )
      const sum = rows.reduce((total, { asn }) => total + Number(asn ?? 0), 0)
      const texts = rows.filter(
        ({ comment }) => comment !== null && (format !== 'csv' || comment !== ''),
      )
      expect(counted).toEqual([rows.length, texts.length, sum])
    })

    it('can be empty', async () => {
      expect(await duckDb(`select count(*) from '${await written('parquet', [])}'`)).toEqual([[0]])
    })
  })
})

const parsed = (value: unknown) => (typeof value === 'string' ? JSON.parse(value) : value)
const asJson = (item: ExportRow) => JSON.parse(JSON.stringify(item))
