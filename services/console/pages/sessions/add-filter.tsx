import { useState } from 'preact/hooks'
import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { goTo, hrefWith } from '../shared/address.ts'
import { useCounts } from '../shared/counts.ts'
import { formatNumber } from '../shared/format.ts'
import { useKeys } from '../shared/keys.ts'
import { isoTime, type TimeSpan } from '../shared/span.ts'
import { Loaded } from '../shell/states.tsx'
import {
  added,
  type ChosenFilter,
  canBeNot,
  changesTo,
  chosenIn,
  emptyText,
  type Field,
  fieldNames,
  filterTitles,
  isField,
  isGrouped,
  mayBeEmpty,
  parametersOf,
} from './fields.ts'

// One function, because another one at each rendering would take the focus back each time.
const focusOn = (select: HTMLSelectElement | null) => select?.focus()

/** Offers the fields, and the values that occur, for one more filter. */
export function AddFilter({
  query,
  span,
  done,
}: {
  query: URLSearchParams
  span: TimeSpan
  done: () => void
}) {
  const [field, setField] = useState<Field>('verdict')
  const [negates, setNegates] = useState(false)
  const chosen = chosenIn(query)
  useKeys(({ key }) => key === 'Escape' && done(), [done])
  const choose = (value: string | null) => {
    goTo(hrefWith(changesTo(added(chosen, { field, value, isNot: negates && canBeNot(field) }))))
    done()
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
      {canBeNot(field) && (
        <select
          aria-label="is, or is not"
          value={negates ? 'is not' : 'is'}
          onChange={({ currentTarget: { value } }) => setNegates(value === 'is not')}
        >
          <option>is</option>
          <option>is not</option>
        </select>
      )}
      {isGrouped(field) ? (
        <Offered {...{ field, chosen, span, choose }} />
      ) : (
        <Typed {...{ field, choose }} />
      )}
    </section>
  )
}

interface Offer {
  field: GroupField
  chosen: readonly ChosenFilter[]
  span: TimeSpan
  choose: (value: string | null) => void
}

const offered = 25

function Offered({ field, chosen, span, choose }: Offer) {
  const [part, setPart] = useState('')
  const others = parametersOf(chosen.filter((one) => one.field !== field))
  const parameters = new URLSearchParams([...others, ['group_by', field], ['top', String(offered)]])
  parameters.set('since', isoTime(span.since))
  parameters.set('until', isoTime(span.until))
  const answer = useCounts(parameters)
  return (
    <>
      <label>
        Value
        <input
          type="search"
          value={part}
          onInput={({ currentTarget }) => setPart(currentTarget.value)}
          onKeyDown={({ key }) => key === 'Enter' && part && choose(part)}
        />
      </label>
      <Loaded answer={answer}>
        {({ data: { groups } }) => {
          const fitting = offersOf(field, groups)
            .map((one) => ({ ...one, text: one.value ?? emptyText(field) }))
            .filter(({ text }) => compared(text).includes(compared(part)))
          if (fitting.length === 0)
            return <p class="hint">No such value occurs within this time.</p>
          return (
            <ul class="offered">
              {fitting.map(({ value, text, sessions }) => (
                <li key={value}>
                  <button type="button" onClick={() => choose(value)}>
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

interface OfferedValue {
  value: string | null
  /** null where they were not counted. */
  sessions: number | null
}

/** The values that occur most. No value is offered also where it is among the others. */
function offersOf(field: GroupField, groups: SessionAggregates['groups']): OfferedValue[] {
  const most: OfferedValue[] = groups
    .filter(({ kind }) => kind === 'value')
    .map(({ values, sessions }) => ({ value: values[field] ?? null, sessions }))
  const hides =
    groups.some(({ kind }) => kind === 'other') && most.every(({ value }) => value !== null)
  return hides && mayBeEmpty(field) ? [...most, { value: null, sessions: null }] : most
}

function Typed({ field, choose }: { field: Field; choose: Offer['choose'] }) {
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
      {mayBeEmpty(field) && (
        <button type="button" onClick={() => choose(null)}>
          {emptyText(field)}
        </button>
      )}
    </form>
  )
}

const compared = (text: string) => text.normalize('NFC').toLowerCase()
