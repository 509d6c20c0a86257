import { hrefWith, navigate } from '../shared/address.ts'
import { allColumns, columnsIn, columnsParameter, requiredColumn } from './columns.tsx'

/** Checkboxes for the columns of the list. The URL stores the choice. */
export function ColumnChoice({ query }: { query: URLSearchParams }) {
  const visible = columnsIn(query)
  const toggle = (name: string, isVisible: boolean) => {
    const names = allColumns.map((column) => column.name)
    const next = names.filter((other) => (other === name ? isVisible : visible.includes(other)))
    navigate(hrefWith({ columns: columnsParameter(next) }), { replace: true })
  }
  return (
    <details class="menu column-choice">
      <summary>Columns</summary>
      <fieldset class="menu-body">
        <legend>Columns of the list</legend>
        {allColumns.map(({ name, title }) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={visible.includes(name)}
              disabled={name === requiredColumn}
              onChange={({ currentTarget }) => toggle(name, currentTarget.checked)}
            />
            {title}
          </label>
        ))}
      </fieldset>
    </details>
  )
}
