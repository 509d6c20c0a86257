import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { TableHead } from '../shared/table-head.tsx'
import { allColumns, columnsIn } from './columns.tsx'

export interface SessionRowsProps {
  rows: SessionSummary[]
  openSessionId: string | null
  query: URLSearchParams
}

/** A table of sessions, with the columns that the URL names. */
export function SessionRows({ rows, openSessionId, query }: SessionRowsProps) {
  const visible = columnsIn(query)
  const columns = allColumns.filter(({ name }) => visible.includes(name))
  return (
    <div class="scroll">
      <table class="rows">
        <TableHead columns={columns.map(({ title }) => title)} numericColumns={['Signals']} />
        <tbody>
          {rows.map((row) => (
            <tr key={row.id} aria-selected={row.id === openSessionId}>
              {columns.map(({ name, style, cell }) => (
                <td key={name} class={style}>
                  {cell(row, query)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
