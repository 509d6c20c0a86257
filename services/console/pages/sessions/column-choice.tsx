import { hrefWith, navigate } from '../shared/address.ts'
import { allColumns, columnsIn, columnsText, requiredColumn } from './columns.tsx'

/** Checkboxes for the columns of the list. The URL stores the choice. */
export function ColumnChoice({ query }: { query: URLSearchParams }) {
  const chosen = columnsIn(query)
  const choose = (name: string, isChosen: boolean) => {
    const names = allColumns.map((column) => column.name)
    const next = names.filter((other) => (other === name ? isChosen : chosen.includes(other)))
    navigate(hrefWith({ columns: columnsText(next) }), { replace: true })
  }
  return (
    <details class="column-choice">
      <summary>Columns</summary>
      <fieldset>
        <legend>Columns of the list</legend>
        {allColumns.map(({ name, title }) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={chosen.includes(name)}
              disabled={name === requiredColumn}
              onChange={({ currentTarget }) => choose(name, currentTarget.checked)}
            />
            {title}
          </label>
        ))}
      </fieldset>
    </details>
  )
}
