import { useState } from 'preact/hooks'
import { hrefWith } from '../shared/address.ts'
import type { TimeSpan } from '../shared/span.ts'
import { AddFilter } from './add-filter.tsx'
import {
  type ChosenFilter,
  canBeNot,
  changesTo,
  chosenIn,
  emptyText,
  filterTitles,
  removed,
  turned,
  valueText,
} from './fields.ts'

/** The filters of the address as chips, each of which can be turned or taken away, and a button for one more. */
export function Filters({ query, span }: { query: URLSearchParams; span: TimeSpan }) {
  const [adding, setAdding] = useState(false)
  const chosen = chosenIn(query)
  return (
    <div class="filters">
      {chosen.map((one) => (
        <Chip key={`${one.field}=${one.value}`} {...{ one, chosen }} />
      ))}
      <button
        type="button"
        class="chip add"
        aria-expanded={adding}
        onClick={() => setAdding(!adding)}
      >
        + filter
      </button>
      {chosen.length > 0 && <a href={hrefWith(changesTo([]))}>Clear all</a>}
      {adding && <AddFilter {...{ query, span }} done={() => setAdding(false)} />}
    </div>
  )
}

function Chip({ one, chosen }: { one: ChosenFilter; chosen: readonly ChosenFilter[] }) {
  const { field, value, isNot } = one
  const [is, other] = isNot ? ['is not', 'is'] : ['is', 'is not']
  const title = filterTitles[field]
  const text = value === null ? emptyText(field) : valueText(field, value)
  return (
    <span class="chip">
      {title}
      {canBeNot(field) && (
        <a
          class="turn"
          href={hrefWith(changesTo(turned(chosen, one)))}
          aria-label={`${title} ${is} ${text}: change to ${other}`}
          title={`Change to ${other}`}
        >
          {is}
        </a>
      )}
      <b>{text}</b>
      <a href={hrefWith(changesTo(removed(chosen, one)))} aria-label={`Remove ${title} ${text}`}>
        ×
      </a>
    </span>
  )
}
