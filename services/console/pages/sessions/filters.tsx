import { useState } from 'preact/hooks'
import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { hrefWith, navigate } from '../shared/address.ts'
import { useCounts } from '../shared/counts.ts'
import { formatNumber } from '../shared/format.ts'
import { type TimeSpan, timesOf } from '../shared/span.ts'
import { Loaded } from '../shell/loaded.tsx'
import {
  canBeEmpty,
  canNegate,
  emptyText,
  type Field,
  fieldNames,
  filterChanges,
  filterTitles,
  isField,
  isGrouped,
  parametersOf,
  parseFilters,
  type UrlFilter,
  valueText,
  withFilter,
  withNegation,
  withoutFilter,
} from './fields.ts'

/** Returns the current URL with these filters. */
export const hrefOfFilters = (filters: readonly UrlFilter[]): string =>
  hrefWith(filterChanges(filters))

/** The URL's filters as chips that can be negated or removed. */
export function FilterChips({ query }: { query: URLSearchParams }) {
  const filters = parseFilters(query)
  if (filters.length === 0) return null
  return (
    <div class="filters">
      {filters.map((filter) => (
        <Chip key={`${filter.field}=${filter.value}`} {...{ filter, filters }} />
      ))}
      <a href={hrefOfFilters([])}>Clear all</a>
    </div>
  )
}

function Chip({ filter, filters }: { filter: UrlFilter; filters: readonly UrlFilter[] }) {
  const { field, value, isNot } = filter
  const [operator, opposite] = isNot ? ['is not', 'is'] : ['is', 'is not']
  const title = filterTitles[field]
  const text = valueText(field, value)
  return (
    <span class="badge">
      {title}
      {canNegate(field) && (
        <a
          href={hrefOfFilters(withNegation(filters, filter))}
          aria-label={`${title} ${operator} ${text}: change to ${opposite}`}
          title={`Change to ${opposite}`}
        >
          {operator}
        </a>
      )}
      <b title={value ?? undefined}>{text}</b>
      <a
        href={hrefOfFilters(withoutFilter(filters, filter))}
        aria-label={`Remove ${title} ${text}`}
      >
        ×
      </a>
    </span>
  )
}

const textInput = { type: 'search' } as const
const scoreInput = { type: 'number', min: 0, max: 100 } as const

/** A form for a filter. Its chip turns it into "is not". */
export function AddFilter({ query, span }: { query: URLSearchParams; span: TimeSpan }) {
  const filters = parseFilters(query)
  const [field, setField] = useState<Field>('verdict')
  const [text, setText] = useState('')
  const hrefTo = (value: string | null) =>
    hrefOfFilters(withFilter(filters, { field, value, isNot: false }))
  return (
    <form
      class="filter-form"
      onSubmit={(event) => {
        event.preventDefault()
        const option = event.currentTarget.querySelector<HTMLAnchorElement>('.options a')
        if (text.trim()) navigate(option?.href ?? hrefTo(text.trim()))
        event.currentTarget.closest<HTMLElement>('[popover]')?.hidePopover()
      }}
    >
      <select
        aria-label="Field"
        value={field}
        onChange={({ currentTarget: { value } }) => isField(value) && setField(value)}
      >
        {fieldNames.map((name) => (
          <option key={name} value={name}>
            {filterTitles[name]}
          </option>
        ))}
      </select>
      <input
        {...(field.startsWith('score') ? scoreInput : textInput)}
        aria-label="Value"
        placeholder="Value"
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
      {isGrouped(field) ? (
        <ValueOptions key={field} {...{ field, filters, span, text, hrefTo }} />
      ) : (
        <>
          <button type="submit">Add</button>
          {canBeEmpty(field) && <a href={hrefTo(null)}>{emptyText(field)}</a>}
        </>
      )}
    </form>
  )
}

interface ValueOptionsProps {
  field: GroupField
  filters: readonly UrlFilter[]
  span: TimeSpan
  /** Text that the options must contain. */
  text: string
  hrefTo: (value: string | null) => string
}

function ValueOptions({ field, filters, span, text, hrefTo }: ValueOptionsProps) {
  const parameters = new URLSearchParams([
    ...parametersOf(filters.filter((filter) => filter.field !== field)),
    ['group_by', field],
    ['top', '25'],
    ...Object.entries(timesOf(span)),
  ])
  const response = useCounts(parameters)
  return (
    <Loaded response={response}>
      {({ data: { groups } }) => {
        const matching = valueOptions(field, groups).filter(({ value }) =>
          normalize(`${valueText(field, value)} ${value}`).includes(normalize(text)),
        )
        if (matching.length === 0) return <p class="hint">No matching value in this period</p>
        return (
          <ul class="options">
            {matching.map(({ value, sessions }) => (
              <li key={value}>
                <a href={hrefTo(value)} title={value ?? undefined}>
                  <span>{valueText(field, value)}</span>
                  <span class="number">{sessions && formatNumber(sessions)}</span>
                </a>
              </li>
            ))}
          </ul>
        )
      }}
    </Loaded>
  )
}

/** Returns the most frequent values, and "no value", which may be among the "other" group. */
function valueOptions(field: GroupField, groups: SessionAggregates['groups']) {
  const options: { value: string | null; sessions?: number }[] = groups
    .filter(({ kind }) => kind === 'value')
    .map(({ values, sessions }) => ({ value: values[field] ?? null, sessions }))
  const hasNone = !canBeEmpty(field) || options.some(({ value }) => value === null)
  return hasNone ? options : [...options, { value: null }]
}

const normalize = (text: string) => text.normalize('NFC').toLowerCase()
