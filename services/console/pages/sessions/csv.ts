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

const factColumns = [
  ...([
    'page_host',
    'page_path',
    'country',
    'asn',
    'network_holder',
    'network',
    'browser',
  ] as const),
  ...(['browser_version', 'os', 'agent_status', 'agent_provider', 'handed_off_at'] as const),
]

const columns: Record<string, (row: SessionSummary) => CsvValue> = {
  id: ({ id }) => id,
  evaluated_at: ({ latest_decision }) => latest_decision.evaluated_at,
  verdict: ({ latest_decision }) => latest_decision.verdict,
  risk_score: ({ latest_decision }) => latest_decision.risk_score,
  is_provisional: ({ latest_decision }) => latest_decision.is_provisional,
  created_at: ({ created_at }) => created_at,
  mark: ({ mark }) => mark?.label,
  client_user_id: ({ client_user_id }) => client_user_id,
  visitor_id: ({ visitor_fingerprint }) => visitor_fingerprint?.id,
  ...Object.fromEntries(
    factColumns.map((name) => [name, ({ facts }: SessionSummary) => facts?.[name]]),
  ),
  signals: ({ facts }) => facts?.signals.join(' '),
}

/** Returns CSV (RFC 4180). The header row has the field names of the API. */
export function sessionsCsv(rows: readonly SessionSummary[]): string {
  const lines = rows.map((row) => Object.values(columns).map((cellOf) => csvCell(cellOf(row))))
  return [Object.keys(columns), ...lines].map((cells) => `${cells.join(',')}\r\n`).join('')
}
