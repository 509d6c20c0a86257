import type { ComponentChildren } from 'preact'

type Cell<Row> = (row: Row) => ComponentChildren
type Column<Row> = Cell<Row> | StyledColumn<Row> | false
type Columns<Row> = readonly (readonly [title: string, Column<Row>])[]

interface StyledColumn<Row> {
  /** `number`: right-aligned; `clip`: cut off at the end, with a tooltip; `mono`: for ids. */
  class: string
  cell: Cell<Row>
}

export interface DataTableProps<Row> {
  label: string
  rows: readonly Row[]
  keyOf: (row: Row) => string
  /** Columns by title, or pairs if titles are values, which can repeat. `false` leaves a column out. */
  columns: Record<string, Column<Row>> | Columns<Row>
  /** Key of the row that is open beside the table. */
  openKey?: string | null
}

/** A table with rows of one line. If it is wider than the page, it scrolls on its own. */
export function DataTable<Row>({ label, rows, keyOf, columns, openKey }: DataTableProps<Row>) {
  const pairs: Columns<Row> = isPairs(columns) ? columns : Object.entries(columns)
  const shown = pairs.flatMap(([title, column], key) => {
    if (!column) return []
    return { key, title, ...(typeof column === 'function' ? { class: '', cell: column } : column) }
  })
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: must be focusable to scroll by keyboard
    <section class="scroll" aria-label={label} tabIndex={0}>
      <table class="rows">
        <thead>
          <tr>
            {shown.map(({ key, title, class: style }) => (
              <th key={key} scope="col" class={style === 'number' ? style : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} aria-selected={openKey ? openKey === keyOf(row) : undefined}>
              {shown.map(({ key, class: style, cell }) => {
                const content = cell(row)
                const isClipped = style.includes('clip') && typeof content === 'string'
                return (
                  <td key={key} class={style || undefined} title={isClipped ? content : undefined}>
                    {content}
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function isPairs<Row>(columns: DataTableProps<Row>['columns']): columns is Columns<Row> {
  return Array.isArray(columns)
}
