import type { ComponentChildren } from 'preact'

interface TableColumn<Row> {
  title: string
  /** `number`: right-aligned; `clip`: cut off at the end, with a tooltip; `mono`: for ids. */
  class?: string
  cell: (row: Row) => ComponentChildren
}

interface DataTableProps<Row> {
  label: string
  rows: readonly Row[]
  keyOf: (row: Row) => string
  /** `false` leaves a column out. */
  columns: readonly (TableColumn<Row> | false)[]
  /** Key of the row that is open beside the table. */
  openKey?: string | null
}

/** A table with rows of one line. If it is wider than the page, it scrolls on its own. */
export function DataTable<Row>({ label, rows, keyOf, columns, openKey }: DataTableProps<Row>) {
  const shown = columns.filter((column) => column !== false)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: must be focusable to scroll by keyboard
    <section class="scroll" aria-label={label} tabIndex={0}>
      <table class="rows">
        <thead>
          <tr>
            {shown.map(({ title, class: style }) => (
              <th key={title} scope="col" class={style?.includes('number') ? 'number' : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} aria-selected={openKey ? openKey === keyOf(row) : undefined}>
              {shown.map(({ title, class: style, cell }) => {
                const content = cell(row)
                const tooltip = typeof content === 'string' ? content : undefined
                return (
                  <td
                    key={title}
                    class={style}
                    title={style?.includes('clip') ? tooltip : undefined}
                  >
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
