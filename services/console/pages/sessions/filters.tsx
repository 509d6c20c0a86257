import { useState } from 'preact/hooks'
import { hrefWith } from '../shared/address.ts'
import type { TimeSpan } from '../shared/span.ts'
import { AddFilter } from './add-filter.tsx'
import {
  canNegate,
  filterChanges,
  filterTitles,
  parseFilters,
  type UrlFilter,
  valueText,
  withNegation,
  withoutFilter,
} from './fields.ts'

/** The URL's filters as chips that can be negated or removed, and a button to add one. */
export function Filters({ query, span }: { query: URLSearchParams; span: TimeSpan }) {
  const [isAdding, setAdding] = useState(false)
  const filters = parseFilters(query)
  return (
    <div class="filters">
      {filters.map((filter) => (
        <Chip key={`${filter.field}=${filter.value}`} {...{ filter, filters }} />
      ))}
      <button
        type="button"
        class="chip add"
        aria-expanded={isAdding}
        onClick={() => setAdding(!isAdding)}
      >
        + filter
      </button>
      {filters.length > 0 && <a href={hrefWith(filterChanges([]))}>Clear all</a>}
      {isAdding && <AddFilter {...{ query, span }} onDone={() => setAdding(false)} />}
    </div>
  )
}

function Chip({ filter, filters }: { filter: UrlFilter; filters: readonly UrlFilter[] }) {
  const { field, value, isNot } = filter
  const [operator, opposite] = isNot ? ['is not', 'is'] : ['is', 'is not']
  const title = filterTitles[field]
  const text = valueText(field, value)
  return (
    <span class="chip">
      {title}
      {canNegate(field) && (
        <a
          class="turn"
          href={hrefWith(filterChanges(withNegation(filters, filter)))}
          aria-label={`${title} ${operator} ${text}: change to ${opposite}`}
          title={`Change to ${opposite}`}
        >
          {operator}
        </a>
      )}
      <b title={value ?? undefined}>{text}</b>
      <a
        href={hrefWith(filterChanges(withoutFilter(filters, filter)))}
        aria-label={`Remove ${title} ${text}`}
      >
        ×
      </a>
    </span>
  )
}
