import type { ComponentChildren } from 'preact'
import type { VisitorSummary } from '../../../readback/schemas/fingerprints.ts'
import { hrefOf, hrefWith, navigate, serverPath } from '../shared/address.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { formatNumber } from '../shared/format.ts'
import { useLinkKeys } from '../shared/keys.ts'
import { ListTable, usePages } from '../shared/pages.tsx'
import { Search } from '../shared/search.tsx'
import { IdLink, RelativeTime, VerdictBadge } from '../shared/values.tsx'
import { browserText, groupByVisitor, type ListedVisitor } from './group-by-visitor.ts'
import './visitors.css'

/** The most recently seen visitors, or those of a user. */
export function VisitorsPage({ query }: { query: URLSearchParams }) {
  const user = query.get('user')
  useLinkKeys('.rows .mono')
  return (
    <>
      <div class="title">
        <h1>{user === null ? 'Visitors' : `Visitors of user ${user}`}</h1>
        {user === null && <Sorts sort={query.get('sort')} />}
      </div>
      <Search
        label="Find a visitor"
        placeholder="visitor id or user id"
        value={user ?? ''}
        onSearch={openVisitors}
      />
      {user === null ? (
        <AllVisitors sort={query.get('sort')} />
      ) : (
        <UserVisitors key={user} user={user} />
      )}
    </>
  )
}

function openVisitors(text: string): void {
  const isVisitor = /^vid_[0-9a-z]{26}$/i.test(text)
  const query = new URLSearchParams(text ? { user: text } : {})
  navigate(hrefOf({ page: 'visitors', ...(isVisitor ? { id: text.toLowerCase() } : { query }) }))
}

const sorts = [
  [null, 'Last seen'],
  ['first_seen', 'First seen'],
  ['seen_count', 'Most sessions'],
] as const

function Sorts({ sort }: { sort: string | null }) {
  return (
    <nav class="segmented" aria-label="Sort by">
      {sorts.map(([name, title]) => (
        <a
          key={title}
          href={hrefWith({ sort: name })}
          aria-current={sort === name ? 'true' : undefined}
        >
          {title}
        </a>
      ))}
    </nav>
  )
}

function AllVisitors({ sort }: { sort: string | null }) {
  const order = sorts.some(([name]) => name === sort) && sort ? `&sort=${sort}` : ''
  return (
    <VisitorList
      path={`/v1/fingerprints?limit=50&include=latest_session${order}`}
      rowsOf={(visitors: VisitorSummary[]) =>
        visitors.map(({ id, lifecycle, latest_session: latest }) => ({
          id,
          lastSeen: lifecycle.last_seen_at,
          sessions: lifecycle.seen_count,
          latest,
        }))
      }
      empty={
        <p class="note">
          No visitors yet. Create a session on the <a href={`${serverPath}/demo`}>demo page</a>, or{' '}
          <a href={hrefOf({ page: 'settings' })}>add the snippet</a> to your site.
        </p>
      }
    />
  )
}

const UserVisitors = ({ user }: { user: string }) => (
  <VisitorList
    path={`/v1/sessions?${new URLSearchParams({ client_user_id: user, limit: '200' })}`}
    rowsOf={groupByVisitor}
    empty={
      <p class="note">
        No sessions with this user id. It must match the id attached to sessions, including upper
        and lower case. <a href={hrefOf({ page: 'visitors' })}>Show all visitors</a>
      </p>
    }
  />
)

interface VisitorListProps<Item> {
  path: string
  rowsOf: (items: Item[]) => ListedVisitor[]
  empty: ComponentChildren
}

function VisitorList<Item>({ path, rowsOf, empty }: VisitorListProps<Item>) {
  const list = usePages<Item>(path)
  return (
    <>
      <ListTable
        label="Visitors"
        list={{ ...list, rows: rowsOf(list.rows) }}
        empty={empty}
        keyOf={({ id }) => id ?? ''}
        columns={{
          Visitor: ({ id }) => (id ? <IdLink id={id} /> : 'none'),
          Verdict: ({ latest }) => latest && <VerdictBadge {...latest} />,
          'Last seen': ({ lastSeen }) => <RelativeTime at={lastSeen} />,
          Sessions: { class: 'number', cell: ({ sessions }) => formatNumber(sessions) },
          User: { class: 'clip', cell: ({ latest }) => latest?.client_user_id },
          Country: ({ latest }) => latest?.country,
          Browser: ({ latest }) => latest && browserText(latest),
        }}
      />
      <ApiRequest paths={[path]} />
    </>
  )
}
