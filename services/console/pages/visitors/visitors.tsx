import type { VisitorSummary } from '../../../readback/schemas/fingerprints.ts'
import type { SessionList } from '../../../readback/schemas/sessions.ts'
import { goTo, hrefOf } from '../shared/address.ts'
import { useAnswer } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { formatNumber } from '../shared/format.ts'
import { Head } from '../shared/head.tsx'
import { useLinkKeys } from '../shared/keys.ts'
import { More } from '../shared/more.tsx'
import { usePages } from '../shared/pages.ts'
import { Scroll } from '../shared/scroll.tsx'
import { Search } from '../shared/search.tsx'
import { serverPath } from '../shared/server-path.ts'
import { Time } from '../shared/time.tsx'
import { Loaded } from '../shell/states.tsx'
import { visitorsIn } from './of-user.ts'
import './visitors.css'

/** Visitors who were seen last, or those of a user. */
export function VisitorsPage({ query }: { query: URLSearchParams }) {
  const user = query.get('user')
  useLinkKeys('.rows .mono a')
  return (
    <>
      <h1>{user === null ? 'Visitors' : `Visitors of the user ${user}`}</h1>
      <Search
        label="Find a visitor"
        placeholder="id of a visitor, or of a user"
        value={user ?? ''}
        search={find}
      />
      {user === null ? <Newest /> : <OfUser user={user} />}
    </>
  )
}

function find(text: string): void {
  const isVisitor = /^vid_[0-9a-z]{26}$/i.test(text)
  const query = new URLSearchParams(text ? { user: text } : {})
  goTo(hrefOf({ page: 'visitors', ...(isVisitor ? { id: text.toLowerCase() } : { query }) }))
}

const columns = ['Visitor', 'Seen last', 'Known since', 'Sessions', 'Address', 'User agent']

function Newest() {
  const path = '/v1/fingerprints?limit=50'
  const visitors = usePages<VisitorSummary>(path)
  return (
    <>
      <Loaded answer={visitors.first}>
        {() =>
          visitors.rows.length === 0 ? (
            <p class="note">
              Nobody was seen yet. Make a session on the{' '}
              <a href={`${serverPath}/demo`}>demo page</a>.
            </p>
          ) : (
            <Scroll label="Visitors">
              <table class="rows">
                <Head columns={columns} numbers={['Sessions']} />
                <tbody>
                  {visitors.rows.map(
                    ({ id, lifecycle, latest_request: { ip_address, user_agent } }) => (
                      <tr key={id}>
                        <td>
                          <Named id={id} />
                        </td>
                        <td>
                          <Time at={lifecycle.last_seen_at} />
                        </td>
                        <td>
                          <Time at={lifecycle.first_seen_at} />
                        </td>
                        <td class="number">{formatNumber(lifecycle.seen_count)}</td>
                        <td>{ip_address}</td>
                        <td class="long">{user_agent}</td>
                      </tr>
                    ),
                  )}
                </tbody>
              </table>
            </Scroll>
          )
        }
      </Loaded>
      <More {...visitors} />
      <ApiRequest paths={[path]} />
    </>
  )
}

const Named = ({ id }: { id: string }) => (
  <span class="mono">
    <a href={hrefOf({ page: 'visitors', id })}>{id}</a>
  </span>
)

/** So many sessions of a user are looked at. */
const lookedAt = 200

function OfUser({ user }: { user: string }) {
  const path = `/v1/sessions?${new URLSearchParams({ client_user_id: user, limit: String(lookedAt) })}`
  const answer = useAnswer<SessionList>(path)
  return (
    <>
      <Loaded answer={answer}>
        {({ data, pagination }) => (
          <>
            {data.length === 0 && (
              <p class="note">
                No session has this user. The id is what you attach to sessions, and upper case
                counts.
              </p>
            )}
            {pagination.has_more && <p>Of the newest {lookedAt} sessions.</p>}
            {data.length > 0 && (
              <Scroll label="Visitors">
                <table class="rows">
                  <Head columns={['Visitor', 'Seen last', 'Sessions']} numbers={['Sessions']} />
                  <tbody>
                    {visitorsIn(data).map(({ id, sessions, seenLast }) => (
                      <tr key={id}>
                        <td>{id === null ? 'none' : <Named id={id} />}</td>
                        <td>
                          <Time at={seenLast} />
                        </td>
                        <td class="number">{formatNumber(sessions)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </Scroll>
            )}
          </>
        )}
      </Loaded>
      <ApiRequest paths={[path]} />
    </>
  )
}
