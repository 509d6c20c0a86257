import { useMemo } from 'preact/hooks'
import { causedNames } from '../../../../schemas/events.ts'
import type { AuditEntry } from '../../../organizations/schemas.ts'
import { hrefOf, hrefWith, navigate, type PageName } from '../shared/address.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { DataTable } from '../shared/data-table.tsx'
import { shortId } from '../shared/format.ts'
import { NextPageButton } from '../shared/next-page-button.tsx'
import { usePages } from '../shared/pages.ts'
import { organizationPath } from '../shared/person.ts'
import { RelativeTime } from '../shared/relative-time.tsx'
import { isoTime, now, spanOf } from '../shared/span.ts'
import { SpanChoice } from '../shared/span-choice.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { useKeys } from './keys.tsx'

/** Returns an event type in words: `ApiKeyIssued` as `API key issued`. */
function describeAction(type: string): string {
  const words = type.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase()
  return words.replace(/^api\b/, 'API').replace(/^./, (letter) => letter.toUpperCase())
}

const actions = causedNames.toSorted().map((type) => [type, describeAction(type)] as const)
const actors = [
  ['person', 'People'],
  ['key', 'API keys'],
  ['operator', 'Operators'],
  ['agent', 'Agents'],
  ['service', 'Server'],
  ['scheduler', 'Schedulers'],
] as const

/** Changes in the organization, newest first. */
export function AuditLog({ query }: { query: URLSearchParams }) {
  const path = useAuditPath(query)
  const pages = usePages<AuditEntry>(path)
  const { response: keys } = useKeys()
  const keyName = (id: string) => keys.data?.data.find((key) => key.id === id)?.name
  return (
    <>
      <div class="title">
        <div class="audit-filters">
          <Filter name="type" label="Actions" options={actions} query={query} />
          <Filter name="actor_type" label="Actors" options={actors} query={query} />
          {query.has('actor_id') && <a href={hrefWith({ actor_id: null })}>Show all actors</a>}
        </div>
        <SpanChoice span={spanOf(query, now.value)} />
      </div>
      <Loaded response={pages.first} lines={8}>
        {() =>
          pages.rows.length === 0 ? (
            <p class="note">No changes match these filters in this period.</p>
          ) : (
            <DataTable
              label="Audit log"
              rows={pages.rows}
              keyOf={({ id }) => id}
              columns={[
                { title: 'Time', cell: ({ occurred_at }) => <RelativeTime at={occurred_at} /> },
                { title: 'Action', cell: ({ type }) => describeAction(type) },
                {
                  title: 'Subject',
                  cell: ({ subject_id, view }) => (
                    <Subject id={subject_id} name={view?.name ?? keyName(subject_id)} />
                  ),
                },
                {
                  title: 'Actor',
                  cell: ({ actor: { type, id } }) => (
                    <a href={hrefWith({ actor_id: id })} title={`Show changes by ${id}`}>
                      {type}: {keyName(id) ?? shortId(id)}
                    </a>
                  ),
                },
                { title: 'Reason', class: 'clip', cell: ({ reason }) => reason },
              ]}
            />
          )
        }
      </Loaded>
      <NextPageButton {...pages} />
      <ApiRequest paths={[path]} />
    </>
  )
}

/** Returns the API path. A relative period keeps its start while the list is shown, because cursors depend on it. */
function useAuditPath(query: URLSearchParams): string {
  return useMemo(() => {
    const { since, until, last } = spanOf(query, now.peek())
    const parameters = new URLSearchParams({ since: isoTime(since) })
    if (!last) parameters.set('until', isoTime(until))
    for (const name of ['type', 'actor_type', 'actor_id'])
      for (const value of query.getAll(name)) parameters.append(name, value)
    return `${organizationPath()}/audit-log?${parameters}`
  }, [query.toString()])
}

interface FilterProps {
  name: string
  label: string
  options: readonly (readonly [value: string, text: string])[]
  query: URLSearchParams
}

function Filter({ name, label, options, query }: FilterProps) {
  return (
    <select
      aria-label={label}
      value={query.get(name) ?? ''}
      onChange={({ currentTarget }) => navigate(hrefWith({ [name]: currentTarget.value || null }))}
    >
      <option value="">All {label.toLowerCase()}</option>
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  )
}

const subjectPages: Record<string, PageName> = { sid: 'sessions', vid: 'visitors' }

function Subject({ id, name }: { id: string; name: string | undefined }) {
  const page = subjectPages[id.split('_', 1)[0] ?? '']
  if (page) return <a href={hrefOf({ page, id })}>{shortId(id)}</a>
  return <span title={id}>{name ?? shortId(id)}</span>
}
