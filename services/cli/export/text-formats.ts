import { harmlessCell } from '../../../infra/spreadsheet.ts'
import type { ColumnKind, ExportColumn, RowEncoder } from './columns.ts'

/** Encodes rows as CSV (RFC 4180): null is nothing, an empty text is `""`, a list is JSON, and a
 * text that a spreadsheet would run has an apostrophe before it. */
export const csvEncoder = (columns: ExportColumn[]): RowEncoder => ({
  start: () => csvLine(columns.map(({ name }) => name)),
  encode: (rows) =>
    rows.map((row) => csvLine(columns.map(({ name, type }) => csvField(type, row[name])))).join(''),
  end: () => '',
})

const csvLine = (fields: string[]): string => `${fields.join(',')}\r\n`

function csvField(type: ColumnKind, value: unknown): string {
  const plain = plainValue(type, value)
  if (plain === null) return ''
  const text =
    typeof plain === 'object' || type === 'json'
      ? JSON.stringify(plain)
      : type === 'text'
        ? harmlessCell(String(plain))
        : String(plain)
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Encodes rows as lines of JSON, each an object with all columns. */
export const jsonLinesEncoder = (columns: ExportColumn[]): RowEncoder => ({
  start: () => '',
  encode: (rows) =>
    rows
      .map((row) =>
        Object.fromEntries(columns.map(({ name, type }) => [name, plainValue(type, row[name])])),
      )
      .map((object) => `${JSON.stringify(object)}\n`)
      .join(''),
  end: () => '',
})

function plainValue(type: ColumnKind, value: unknown): unknown {
  if (value === null || value === undefined) return null
  return type === 'time' ? new Date(Number(value)).toISOString() : value
}
