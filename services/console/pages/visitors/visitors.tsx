import type { VisitorSummary } from '../../../readback/schemas/fingerprints.ts'
import type { SessionList } from '../../../readback/schemas/sessions.ts'
import { hrefOf, navigate } from '../shared/address.ts'
import { useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { formatNumber } from '../shared/format.ts'
import { useLinkKeys } from '../shared/keys.ts'
import { NextPageButton } from '../shared/next-page-button.tsx'
import { usePages } from '../shared/pages.ts'
import { RelativeTime } from '../shared/relative-time.tsx'
import { ScrollRegion } from '../shared/scroll-region.tsx'
import { Search } from '../shared/search.tsx'
import { serverPath } from '../shared/server-path.ts'
import { TableHead } from '../shared/table-head.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { groupByVisitor } from './group-by-visitor.ts'
import './visitors.css'

/** The most recently seen visitors, or those of a user. */
export function VisitorsPage({ query }: { query: URLSearchParams }) {
  const user = query.get('user')
  useLinkKeys('.rows .mono a')
  return (
    <>
      <h1>{user === null ? 'Visitors' : `Visitors of user ${user}`}</h1>
      <Search
        label="Find a visitor"
        placeholder="visitor id or user id"
        value={user ?? ''}
        onSearch={openVisitors}
      />
      {user === null ? <NewestVisitors /> : <UserVisitors user={user} />}
    </>
  )
}

function openVisitors(text: string): void {
  const isVisitor = /^vid_[0-9a-z]{26}$/i.test(text)
  const query = new URLSearchParams(text ? { user: text } : {})
  navigate(hrefOf({ page: 'visitors', ...(isVisitor ? { id: text.toLowerCase() } : { query }) }))
}

const columns = ['Visitor', 'Last seen', 'First seen', 'Sessions', 'IP address', 'User agent']

function NewestVisitors() {
  const path = '/v1/fingerprints?limit=50'
  const visitors = usePages<VisitorSummary>(path)
  return (
    <>
      <Loaded response={visitors.first}>
        {() =>
          visitors.rows.length === 0 ? (
            <p class="note">
              No visitors yet. Create a session on the <a href={`${serverPath}/demo`}>demo page</a>.
            </p>
          ) : (
            <ScrollRegion label="Visitors">
              <table class="rows">
                <TableHead columns={columns} numericColumns={['Sessions']} />
                <tbody>
                  {visitors.rows.map(
                    ({ id, lifecycle, latest_request: { ip_address, user_agent } }) => (
                      <tr key={id}>
                        <td>
                          <VisitorLink id={id} />
                        </td>
                        <td>
                          <RelativeTime at={lifecycle.last_seen_at} />
                        </td>
                        <td>
                          <RelativeTime at={lifecycle.first_seen_at} />
                        </td>
                        <td class="number">{formatNumber(lifecycle.seen_count)}</td>
                        <td>{ip_address}</td>
                        <td class="long">{user_agent}</td>
                      </tr>
                    ),
                  )}
                </tbody>
              </table>
            </ScrollRegion>
          )
        }
      </Loaded>
      <NextPageButton {...visitors} />
      <ApiRequest paths={[path]} />
    </>
  )
}

const VisitorLink = ({ id }: { id: string }) => (
  <span class="mono">
    <a href={hrefOf({ page: 'visitors', id })}>{id}</a>
  </span>
)

/** Upper limit on the user's sessions that are searched for visitors. */
const maxUserSessions = 200

function UserVisitors({ user }: { user: string }) {
  const path = `/v1/sessions?${new URLSearchParams({ client_user_id: user, limit: String(maxUserSessions) })}`
  const response = useResponse<SessionList>(path)
  return (
    <>
      <Loaded response={response}>
        {({ data, pagination }) => (
          <>
            {data.length === 0 && (
              <p class="note">
                No sessions with this user id. It must match the id attached to sessions, including
                upper and lower case.
              </p>
            )}
            {pagination.has_more && <p>From the newest {maxUserSessions} sessions</p>}
            {data.length > 0 && (
              <ScrollRegion label="Visitors">
                <table class="rows">
                  <TableHead
                    columns={['Visitor', 'Last seen', 'Sessions']}
                    numericColumns={['Sessions']}
                  />
                  <tbody>
                    {groupByVisitor(data).map(({ id, sessions, lastSeen }) => (
                      <tr key={id}>
                        <td>{id === null ? 'none' : <VisitorLink id={id} />}</td>
                        <td>
                          <RelativeTime at={lastSeen} />
                        </td>
                        <td class="number">{formatNumber(sessions)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </ScrollRegion>
            )}
          </>
        )}
      </Loaded>
      <ApiRequest paths={[path]} />
    </>
  )
}
