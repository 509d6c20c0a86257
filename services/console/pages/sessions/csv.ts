import { escapeCell } from '../../../../infra/spreadsheet.ts'
import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { escapeInvisible } from '../shared/escape-invisible.ts'

/** Row limit; `tidegate export sessions` has none. */
export const maxCsvRows = 10_000

type CsvValue = string | number | boolean | null | undefined

export function csvCell(value: CsvValue): string {
  if (typeof value !== 'string') return String(value ?? '')
  const escaped = escapeCell(escapeInvisible(value))
  return /[",\r\n]/.test(escaped) ? `"${escaped.replaceAll('"', '""')}"` : escaped
}

function cellsOf(row: SessionSummary): Record<string, CsvValue> {
  const { id, created_at, client_user_id, latest_decision, visitor_fingerprint, mark, facts } = row
  const { evaluated_at, verdict, risk_score, is_provisional } = latest_decision
  return {
    id,
    evaluated_at,
    verdict,
    risk_score,
    is_provisional,
    created_at,
    mark: mark?.label,
    client_user_id,
    visitor_id: visitor_fingerprint?.id,
    ...facts,
    signals: facts?.signals.join(' '),
  }
}

/** Returns CSV (RFC 4180). The header row has the field names of the API. */
export function sessionsCsv(rows: readonly SessionSummary[]): string {
  const records = rows.map(cellsOf)
  const names = [...new Set(records.flatMap(Object.keys))]
  const lines = records.map((record) => names.map((name) => csvCell(record[name])))
  return [names, ...lines].map((cells) => `${cells.join(',')}\r\n`).join('')
}
