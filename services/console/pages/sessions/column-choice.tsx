import { goTo, hrefWith } from '../shared/address.ts'
import { allColumns, columnsIn, columnsText, fixed } from './columns.tsx'

/** Columns of the list, which the address names. */
export function ColumnChoice({ query }: { query: URLSearchParams }) {
  const chosen = columnsIn(query)
  const choose = (name: string, isChosen: boolean) => {
    const names = allColumns.map((one) => one.name)
    const next = names.filter((one) => (one === name ? isChosen : chosen.includes(one)))
    goTo(hrefWith({ columns: columnsText(next) }), { replace: true })
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
              disabled={name === fixed}
              onChange={({ currentTarget }) => choose(name, currentTarget.checked)}
            />
            {title}
          </label>
        ))}
      </fieldset>
    </details>
  )
}
