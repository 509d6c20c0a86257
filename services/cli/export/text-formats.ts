import type { ColumnKind, ExportColumn, ExportRow } from './columns.ts'

/** Lines of CSV (RFC 4180): null is nothing, an empty text is `""`, and a list is JSON. */
export function csvOf(columns: ExportColumn[], rows: readonly ExportRow[]): string {
  return rows.map((row) => csvLine(columns.map(({ name, type }) => csvField(type, row[name])))).join('')
}

export const csvHead = (columns: ExportColumn[]): string => csvLine(columns.map(({ name }) => name))

const csvLine = (fields: string[]): string => `${fields.join(',')}\r\n`

function csvField(type: ColumnKind, value: unknown): string {
  const plain = plainValue(type, value)
  if (plain === null) return ''
  const text = typeof plain === 'object' || type === 'json' ? JSON.stringify(plain) : String(plain)
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Lines of JSON, each an object with all columns. */
export function jsonLinesOf(columns: ExportColumn[], rows: readonly ExportRow[]): string {
  const objects = rows.map((row) => columns.map(({ name, type }) => [name, plainValue(type, row[name])]))
  return objects.map((members) => `${JSON.stringify(Object.fromEntries(members))}\n`).join('')
}

function plainValue(type: ColumnKind, value: unknown): unknown {
  if (value === null || value === undefined) return null
  return type === 'time' ? new Date(Number(value)).toISOString() : value
}
