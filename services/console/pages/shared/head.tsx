/** The first row of a table. `numbers` are titles of columns of numbers, which are aligned to the right. */
export function Head({
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
