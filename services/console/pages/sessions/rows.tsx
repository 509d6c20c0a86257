import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { TableHead } from '../shared/table-head.tsx'
import { allColumns, columnsIn } from './columns.tsx'

interface SessionRowsProps {
  rows: SessionSummary[]
  open: string | null
  query: URLSearchParams
}

/** A table of sessions, with the columns that the URL names. */
export function SessionRows({ rows, open, query }: SessionRowsProps) {
  const visible = columnsIn(query)
  const columns = allColumns.filter(({ name }) => visible.includes(name))
  return (
    <div class="scroll">
      <table class="rows">
        <TableHead columns={columns.map(({ title }) => title)} numericColumns={['Signals']} />
        <tbody>
          {rows.map((row) => (
            <tr key={row.id} aria-selected={row.id === open}>
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
