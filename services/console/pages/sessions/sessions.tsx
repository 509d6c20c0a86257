import { SessionView } from '../session/session.tsx'
import { hrefOf, hrefWith, navigate } from '../shared/address.ts'
import { useCounts } from '../shared/counts.ts'
import { pluralize } from '../shared/format.ts'
import { Menu } from '../shared/menu.tsx'
import { Search } from '../shared/search.tsx'
import { intervalOf, now, spanOf, type TimeSpan } from '../shared/span.ts'
import { SpanChoice } from '../shared/span-choice.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { Chart } from './chart.tsx'
import { ColumnChoice } from './columns.tsx'
import { CsvButton } from './csv-button.tsx'
import { requestParameters } from './fields.ts'
import { AddFilter, FilterChips } from './filters.tsx'
import { GroupChoice, GroupTable, groupFieldIn } from './groups.tsx'
import { List, useListPath } from './list.tsx'
import { ViewTitle } from './views.tsx'

export function SessionsPage({ query }: { query: URLSearchParams }) {
  const span = spanOf(query, now.value)
  const openSessionId = query.get('open')
  const listPath = useListPath(query)
  return (
    <>
      <div class="title">
        <ViewTitle query={query} />
        <SpanChoice span={span} />
      </div>
      <div class="row toolbar">
        <Search
          label="Search"
          placeholder="Id, user, page, user agent or IP address"
          value={query.get('search') ?? ''}
          onSearch={(text) => navigate(hrefWith({ search: text || null }))}
        />
        <Menu label="Filter" title="Add a filter">
          <AddFilter {...{ query, span }} />
        </Menu>
        <GroupChoice query={query} />
        <ColumnChoice query={query} />
        <CsvButton key={listPath} path={listPath} />
      </div>
      <FilterChips query={query} />
      <SessionCounts {...{ query, span }} />
      <List {...{ query, listPath }} />
      {openSessionId && (
        <aside class="drawer" aria-label="Session">
          <a class="close" href={hrefWith({ open: null })} aria-label="Close">
            ×
          </a>
          <a href={hrefOf({ page: 'sessions', id: openSessionId })}>Open as page</a>
          <SessionView key={openSessionId} id={openSessionId} />
        </aside>
      )}
    </>
  )
}

// Counts don't support search, so they are of all sessions that match the filters.
function SessionCounts({ query, span }: { query: URLSearchParams; span: TimeSpan }) {
  const field = groupFieldIn(query)
  const parameters = requestParameters(query, span)
  const isSearch = parameters.has('search')
  parameters.delete('search')
  parameters.set('interval', intervalOf(span).name)
  parameters.set('group_by', 'verdict')
  const response = useCounts(parameters)
  return (
    <section aria-label="Over time">
      <Loaded response={response}>
        {({ data }) => (
          <Chart counts={data} span={span}>
            <span>
              <b>{pluralize('session', data.sessions)}</b>
              {data.visitors !== null && `, ${pluralize('visitor', data.visitors)}`}
              {!data.is_complete && ' (only the newest were counted)'}
              {isSearch && ' before the search'}
            </span>
          </Chart>
        )}
      </Loaded>
      {field && <GroupTable key={field} {...{ field, query, span }} />}
    </section>
  )
}
