import { SessionView } from '../session/session.tsx'
import { goTo, hrefOf, hrefWith } from '../shared/address.ts'
import { useCounts } from '../shared/counts.ts'
import { amount } from '../shared/format.ts'
import { Search } from '../shared/search.tsx'
import { intervalOf, now, spanOf, type TimeSpan } from '../shared/span.ts'
import { SpanChoice } from '../shared/span-choice.tsx'
import { Loaded } from '../shell/states.tsx'
import { Chart } from './chart.tsx'
import { requestParameters } from './fields.ts'
import { Filters } from './filters.tsx'
import { Groups } from './groups.tsx'
import { List } from './list.tsx'

/** Sessions that the address asks for: how many there were over time, by what they are grouped, and one by one. */
export function SessionsPage({ query }: { query: URLSearchParams }) {
  const span = spanOf(query, now.value)
  const open = query.get('open')
  return (
    <>
      <div class="title">
        <h1>Sessions</h1>
        <SpanChoice span={span} />
      </div>
      <Search
        label="Search"
        placeholder="id, user, page, user agent, address"
        value={query.get('search') ?? ''}
        search={(text) => goTo(hrefWith({ search: text || null }))}
      />
      <Filters {...{ query, span }} />
      {!query.has('search') && <Overall {...{ query, span }} />}
      <div class={open ? 'split' : ''}>
        <List {...{ query, open }} />
        {open && (
          <aside class="side-panel panel" aria-label="Session">
            <a class="close" href={hrefWith({ open: null })} aria-label="Close">
              ×
            </a>
            <a href={hrefOf({ page: 'sessions', id: open })}>Open as a page</a>
            <SessionView id={open} />
          </aside>
        )}
      </div>
    </>
  )
}

function Overall({ query, span }: { query: URLSearchParams; span: TimeSpan }) {
  const counted = requestParameters(query, span)
  counted.set('interval', intervalOf(span).name)
  counted.set('group_by', 'verdict')
  const answer = useCounts(counted)
  return (
    <section aria-label="Over time">
      <Loaded answer={answer}>
        {({ data }) => (
          <>
            <p class="sum">
              <b>{amount('session', data.sessions)}</b>
              {data.visitors !== null && `, ${amount('visitor', data.visitors)}`}
              {!data.is_complete && ' (the newest ones: there are too many to read)'}
            </p>
            <Chart counts={data} span={span} />
          </>
        )}
      </Loaded>
      <Groups {...{ query, span }} />
    </section>
  )
}
