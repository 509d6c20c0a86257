import { causedNames } from '../../../../schemas/events.ts'
import type { AuditEntry } from '../../../organizations/schemas.ts'
import { hrefWith } from '../shared/address.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { shortId } from '../shared/format.ts'
import { FilterSelect, useFilteredPath } from '../shared/list-filters.tsx'
import { ListTable, usePages } from '../shared/pages.tsx'
import { organizationPath } from '../shared/person.ts'
import { now, spanOf } from '../shared/span.ts'
import { SpanChoice } from '../shared/span-choice.tsx'
import { IdLink, RelativeTime } from '../shared/values.tsx'
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

const auditFilters = ['type', 'actor_type', 'actor_id']

/** Changes in the organization, newest first. */
export function AuditLog({ query }: { query: URLSearchParams }) {
  const path = useFilteredPath(`${organizationPath()}/audit-log`, query, auditFilters)
  const { rows: keys } = useKeys().list
  const keyName = (id: string) => keys.find((key) => key.id === id)?.name
  return (
    <>
      <div class="title">
        <div class="filters">
          <FilterSelect name="type" label="Actions" options={actions} query={query} />
          <FilterSelect name="actor_type" label="Actors" options={actors} query={query} />
          {query.has('actor_id') && <a href={hrefWith({ actor_id: null })}>Show all actors</a>}
        </div>
        <SpanChoice span={spanOf(query, now.value)} />
      </div>
      <ListTable
        label="Audit log"
        list={usePages<AuditEntry>(path)}
        empty={<p class="note">No changes match these filters in this period.</p>}
        keyOf={({ id }) => id}
        columns={{
          Time: ({ occurred_at }) => <RelativeTime at={occurred_at} />,
          Action: ({ type }) => describeAction(type),
          Subject: {
            class: 'clip',
            cell: ({ subject_id, view }) => (
              <Subject id={subject_id} name={view?.name ?? keyName(subject_id)} />
            ),
          },
          Actor: ({ actor: { type, id } }) => (
            <a href={hrefWith({ actor_id: id })} title={`Show changes by ${id}`}>
              {type}: {keyName(id) ?? shortId(id)}
            </a>
          ),
          Reason: { class: 'clip', cell: ({ reason }) => reason },
        }}
      />
      <ApiRequest paths={[path]} />
    </>
  )
}

function Subject({ id, name }: { id: string; name: string | undefined }) {
  if (/^[sv]id_/.test(id)) return <IdLink id={id} />
  return <span title={id}>{name ?? shortId(id)}</span>
}
