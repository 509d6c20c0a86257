/** A table's header row. `numbers` are the titles of right-aligned columns. */
export function TableHead({
  columns,
  numbers = [],
}: {
  columns: readonly string[]
  numbers?: readonly string[]
}) {
  return (
    <thead>
      <tr>
        {columns.map((title) => (
          <th scope="col" key={title} class={numbers.includes(title) ? 'number' : undefined}>
            {title}
          </th>
        ))}
      </tr>
    </thead>
  )
}
