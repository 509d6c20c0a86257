import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { TableHead } from '../shared/head.tsx'
import { allColumns, columnsIn } from './columns.tsx'

interface SessionRowsProps {
  rows: SessionSummary[]
  open: string | null
  query: URLSearchParams
}

/** A table of sessions with the URL's columns. A session opens beside it. */
export function SessionRows({ rows, open, query }: SessionRowsProps) {
  const chosen = columnsIn(query)
  const columns = allColumns.filter(({ name }) => chosen.includes(name))
  return (
    <div class="scroll">
      <table class="rows">
        <TableHead columns={columns.map(({ title }) => title)} numbers={['Signals']} />
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
