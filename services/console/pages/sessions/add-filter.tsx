import { useState } from 'preact/hooks'
import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { hrefWith, navigate } from '../shared/address.ts'
import { useCounts } from '../shared/counts.ts'
import { formatNumber } from '../shared/format.ts'
import { useKeys } from '../shared/keys.ts'
import { isoTime, type TimeSpan } from '../shared/span.ts'
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
} from './fields.ts'

// Not defined in the component, where each render would move the focus again.
const focusOn = (select: HTMLSelectElement | null) => select?.focus()

/** A form that adds a filter: field, "is" or "is not", and value. */
export function AddFilter({
  query,
  span,
  onDone,
}: {
  query: URLSearchParams
  span: TimeSpan
  onDone: () => void
}) {
  const [field, setField] = useState<Field>('verdict')
  const [isNot, setNot] = useState(false)
  const filters = parseFilters(query)
  useKeys(({ key }) => key === 'Escape' && onDone(), [onDone])
  const choose = (value: string | null) => {
    navigate(
      hrefWith(
        filterChanges(withFilter(filters, { field, value, isNot: isNot && canNegate(field) })),
      ),
    )
    onDone()
  }
  return (
    <section class="add-filter panel" aria-label="Add a filter">
      <label>
        Field
        <select
          ref={focusOn}
          value={field}
          onChange={({ currentTarget: { value } }) => isField(value) && setField(value)}
        >
          {fieldNames.map((name) => (
            <option key={name} value={name}>
              {filterTitles[name]}
            </option>
          ))}
        </select>
      </label>
      {canNegate(field) && (
        <select
          aria-label="is, or is not"
          value={isNot ? 'is not' : 'is'}
          onChange={({ currentTarget: { value } }) => setNot(value === 'is not')}
        >
          <option>is</option>
          <option>is not</option>
        </select>
      )}
      {isGrouped(field) ? (
        <ValueOptions {...{ field, filters, span, choose }} />
      ) : (
        <ValueInput {...{ field, choose }} />
      )}
    </section>
  )
}

interface ValueOptionsProps {
  field: GroupField
  filters: readonly UrlFilter[]
  span: TimeSpan
  choose: (value: string | null) => void
}

const maxOptions = 25

function ValueOptions({ field, filters, span, choose }: ValueOptionsProps) {
  const [search, setSearch] = useState('')
  const otherFilters = parametersOf(filters.filter((filter) => filter.field !== field))
  const parameters = new URLSearchParams([
    ...otherFilters,
    ['group_by', field],
    ['top', String(maxOptions)],
  ])
  parameters.set('since', isoTime(span.since))
  parameters.set('until', isoTime(span.until))
  const response = useCounts(parameters)
  return (
    <>
      <label>
        Value
        <input
          type="search"
          value={search}
          onInput={({ currentTarget }) => setSearch(currentTarget.value)}
          onKeyDown={({ key }) => key === 'Enter' && search && choose(search)}
        />
      </label>
      <Loaded response={response}>
        {({ data: { groups } }) => {
          const matching = valueOptions(field, groups)
            .map((option) => ({ ...option, text: valueText(field, option.value) }))
            .filter(({ text, value }) => normalize(`${text} ${value}`).includes(normalize(search)))
          if (matching.length === 0) return <p class="hint">No matching value in this period</p>
          return (
            <ul class="offered">
              {matching.map(({ value, text, sessions }) => (
                <li key={value}>
                  <button type="button" title={value ?? undefined} onClick={() => choose(value)}>
                    {value === null ? <em>{text}</em> : <span>{text}</span>}
                    {sessions !== null && <span class="number">{formatNumber(sessions)}</span>}
                  </button>
                </li>
              ))}
            </ul>
          )
        }}
      </Loaded>
    </>
  )
}

interface ValueOption {
  value: string | null
  /** null if not counted. */
  sessions: number | null
}

/** Returns the most frequent values, and "no value" if it may be hidden among the "other" group. */
function valueOptions(field: GroupField, groups: SessionAggregates['groups']): ValueOption[] {
  const options: ValueOption[] = groups
    .filter(({ kind }) => kind === 'value')
    .map(({ values, sessions }) => ({ value: values[field] ?? null, sessions }))
  const mayHideEmpty =
    groups.some(({ kind }) => kind === 'other') && options.every(({ value }) => value !== null)
  return mayHideEmpty && canBeEmpty(field) ? [...options, { value: null, sessions: null }] : options
}

function ValueInput({ field, choose }: { field: Field; choose: ValueOptionsProps['choose'] }) {
  const [value, setValue] = useState('')
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        choose(value.trim())
      }}
    >
      <label>
        {filterTitles[field]}
        <input
          required
          value={value}
          onInput={({ currentTarget }) => setValue(currentTarget.value)}
        />
      </label>
      <button type="submit">Add</button>{' '}
      {canBeEmpty(field) && (
        <button type="button" onClick={() => choose(null)}>
          {emptyText(field)}
        </button>
      )}
    </form>
  )
}

const normalize = (text: string) => text.normalize('NFC').toLowerCase()
