import { SessionView } from '../session/session.tsx'
import { hrefOf, hrefWith, navigate } from '../shared/address.ts'
import { useCounts } from '../shared/counts.ts'
import { pluralize } from '../shared/format.ts'
import { Search } from '../shared/search.tsx'
import { intervalOf, now, spanOf, type TimeSpan } from '../shared/span.ts'
import { SpanChoice } from '../shared/span-choice.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { Chart } from './chart.tsx'
import { requestParameters } from './fields.ts'
import { Filters } from './filters.tsx'
import { Groups } from './groups.tsx'
import { List } from './list.tsx'

export function SessionsPage({ query }: { query: URLSearchParams }) {
  const span = spanOf(query, now.value)
  const openSessionId = query.get('open')
  return (
    <>
      <div class="title">
        <h1>Sessions</h1>
        <SpanChoice span={span} />
      </div>
      <Search
        label="Search"
        placeholder="id, user, page, user agent or IP address"
        value={query.get('search') ?? ''}
        onSearch={(text) => navigate(hrefWith({ search: text || null }))}
      />
      <Filters {...{ query, span }} />
      {!query.has('search') && <SessionCounts {...{ query, span }} />}
      <div class={openSessionId ? 'split' : ''}>
        <List {...{ query, openSessionId }} />
        {openSessionId && (
          <aside class="side-panel panel" aria-label="Session">
            <a class="close" href={hrefWith({ open: null })} aria-label="Close">
              ×
            </a>
            <a href={hrefOf({ page: 'sessions', id: openSessionId })}>Open as a page</a>
            <SessionView id={openSessionId} />
          </aside>
        )}
      </div>
    </>
  )
}

function SessionCounts({ query, span }: { query: URLSearchParams; span: TimeSpan }) {
  const parameters = requestParameters(query, span)
  parameters.set('interval', intervalOf(span).name)
  parameters.set('group_by', 'verdict')
  const response = useCounts(parameters)
  return (
    <section aria-label="Over time">
      <Loaded response={response}>
        {({ data }) => (
          <>
            <p class="sum">
              <b>{pluralize('session', data.sessions)}</b>
              {data.visitors !== null && `, ${pluralize('visitor', data.visitors)}`}
              {!data.is_complete && ' (only the newest were counted)'}
            </p>
            <Chart counts={data} span={span} />
          </>
        )}
      </Loaded>
      <Groups {...{ query, span }} />
    </section>
  )
}
