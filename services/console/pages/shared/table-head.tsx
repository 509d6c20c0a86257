/** A table's header row. `numericColumns` are right-aligned. */
export function TableHead({
  columns,
  numericColumns = [],
}: {
  columns: readonly string[]
  numericColumns?: readonly string[]
}) {
  return (
    <thead>
      <tr>
        {columns.map((title) => (
          <th scope="col" key={title} class={numericColumns.includes(title) ? 'number' : undefined}>
            {title}
          </th>
        ))}
      </tr>
    </thead>
  )
}
