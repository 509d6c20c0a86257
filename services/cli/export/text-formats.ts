import { escapeCell } from '../../../infra/spreadsheet.ts'
import type { ColumnType, ExportColumn, RowEncoder } from './columns.ts'

/**
 * Encodes rows as CSV (RFC 4180). Null is an empty field, empty text is `""`, lists are JSON, and text that a spreadsheet
 * would run as a formula gets a leading apostrophe.
 */
export const csvEncoder = (columns: ExportColumn[]): RowEncoder => ({
  start: () => csvLine(columns.map(({ name }) => name)),
  encode: (rows) =>
    rows.map((row) => csvLine(columns.map(({ name, type }) => csvField(type, row[name])))).join(''),
  end: () => '',
})

const csvLine = (fields: string[]): string => `${fields.join(',')}\r\n`

function csvField(type: ColumnType, value: unknown): string {
  const plain = plainValue(type, value)
  if (plain === null) return ''
  const text =
    typeof plain === 'object' || type === 'json'
      ? JSON.stringify(plain)
      : type === 'text'
        ? escapeCell(String(plain))
        : String(plain)
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Encodes rows as JSON lines, each an object with all columns. */
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

function plainValue(type: ColumnType, value: unknown): unknown {
  if (value === null || value === undefined) return null
  return type === 'time' ? new Date(Number(value)).toISOString() : value
}
