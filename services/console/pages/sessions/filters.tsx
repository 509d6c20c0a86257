import { useState } from 'preact/hooks'
import { goTo, hrefWith } from '../shared/address.ts'
import { useCounts } from '../shared/counts.ts'
import { formatNumber, inWords } from '../shared/format.ts'
import { useKeys } from '../shared/keys.ts'
import { isoTime, type TimeSpan } from '../shared/span.ts'
import { Loaded } from '../shell/states.tsx'
import { type Field, fieldNames, filtersIn, filterTitles, isGrouped } from './fields.ts'

/** The filters of the address as chips, each of which can be taken away, and a button for one more. */
export function Filters({ query, span }: { query: URLSearchParams; span: TimeSpan }) {
  const [adding, setAdding] = useState(false)
  const set = [...filtersIn(query)].filter(([name]) => name !== 'search')
  return (
    <div class="filters">
      {set.map(([name = '', value = '']) => (
        <Chip key={`${name}=${value}`} {...{ name, value, query }} />
      ))}
      <button type="button" class="chip add" aria-expanded={adding} onClick={() => setAdding(!adding)}>
        + filter
      </button>
      {set.length > 0 && (
        <a class="clear" href={hrefWith(Object.fromEntries(fieldNames.map((name) => [name, null])))}>
          Clear all
        </a>
      )}
      {adding && <AddFilter {...{ query, span }} done={() => setAdding(false)} />}
    </div>
  )
}

const isField = (name: string): name is Field => Object.hasOwn(filterTitles, name)

function Chip({ name, value, query }: { name: string; value: string; query: URLSearchParams }) {
  const title = isField(name) ? filterTitles[name] : name
  const others = query.getAll(name).filter((other) => other !== value)
  return (
    <span class="chip">
      {title} <b>{inWords(value)}</b>
      <a
        href={hrefWith({ [name]: others.length > 0 ? others : null })}
        aria-label={`Remove ${title} ${value}`}
      >
        ×
      </a>
    </span>
  )
}

// One function, because another one at each rendering would take the focus back each time.
const focusOn = (select: HTMLSelectElement | null) => select?.focus()

function AddFilter({ query, span, done }: { query: URLSearchParams; span: TimeSpan; done: () => void }) {
  const [field, setField] = useState<Field>('verdict')
  useKeys(({ key }) => key === 'Escape' && done(), [done])
  const choose = (value: string) => {
    goTo(hrefWith({ [field]: [...new Set([...query.getAll(field), value])] }))
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
      {isGrouped(field) ? <Offered {...{ field, query, span, choose }} /> : <Typed {...{ field, choose }} />}
    </section>
  )
}

interface Offer {
  field: Field
  query: URLSearchParams
  span: TimeSpan
  choose: (value: string) => void
}

const offered = 25

function Offered({ field, query, span, choose }: Offer) {
  const [part, setPart] = useState('')
  const others = filtersIn(query)
  others.delete(field)
  others.delete('search')
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
          const fitting = groups.filter(({ values }) =>
            values[field]?.toLowerCase().includes(part.toLowerCase()),
          )
          if (fitting.length === 0) return <p class="hint">No such value occurs within this time.</p>
          return (
            <ul class="offered">
              {fitting.map(({ values, sessions }) => (
                <li key={values[field]}>
                  <button type="button" onClick={() => choose(values[field] ?? '')}>
                    <span>{values[field]}</span>
                    <span class="number">{formatNumber(sessions)}</span>
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

function Typed({ field, choose }: Pick<Offer, 'field' | 'choose'>) {
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
        <input required value={value} onInput={({ currentTarget }) => setValue(currentTarget.value)} />
      </label>
      <button type="submit">Add</button>
    </form>
  )
}
