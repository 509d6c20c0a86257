import { useMemo, useRef, useState } from 'preact/hooks'
import { SessionView } from '../session/session.tsx'
import { goTo, hrefOf, hrefWith } from '../shared/address.ts'
import { RequestFailure, send, useAnswer } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { useCounts } from '../shared/counts.ts'
import { formatNumber } from '../shared/format.ts'
import { usePageKeys } from '../shared/keys.ts'
import { intervalOf, now, spanOf, type TimeSpan } from '../shared/span.ts'
import { SpanChoice } from '../shared/span-choice.tsx'
import type { ListedSessionRow, SessionList } from '../shared/types.ts'
import { Loaded } from '../shell/states.tsx'
import { Chart } from './chart.tsx'
import { CsvButton } from './csv-button.tsx'
import { filtersIn, requestParameters } from './fields.ts'
import { Filters } from './filters.tsx'
import { Groups } from './groups.tsx'
import { Rows } from './rows.tsx'
import './sessions.css'

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
      <Search query={query} />
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

function Search({ query }: { query: URLSearchParams }) {
  return (
    <search>
      <form
        class="search"
        onSubmit={(event) => {
          event.preventDefault()
          const value = new FormData(event.currentTarget).get('search')
          goTo(hrefWith({ search: typeof value === 'string' && value ? value : null }))
        }}
      >
        <input
          id="search"
          type="search"
          name="search"
          aria-label="Search"
          placeholder="id, user, page, user agent, address"
          defaultValue={query.get('search') ?? ''}
        />
      </form>
    </search>
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
              <b>{formatNumber(data.sessions)}</b> sessions
              {data.visitors !== null && `, ${formatNumber(data.visitors)} visitors`}
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

const pageSize = 50

// Where a relative time begins is when the list was asked for, because its pages go on from there.
function usePath(query: URLSearchParams): string {
  const question = new URLSearchParams(query)
  for (const name of ['open', 'group']) question.delete(name)
  return useMemo(() => {
    const span = spanOf(query, now.peek())
    const parameters = requestParameters(query, span)
    if (span.last) parameters.delete('until')
    return `/v1/sessions?${parameters}`
  }, [question.toString()])
}

function List({ query, open }: { query: URLSearchParams; open: string | null }) {
  const listed = usePath(query)
  const path = `${listed}&limit=${pageSize}`
  // The first page would move on, and leave a gap before those that follow.
  const isFirstAlone = useRef(true)
  const first = useAnswer<SessionList>(path, { everyMs: 5000, mayRepeat: () => isFirstAlone.current })
  const [more, setMore] = useState<{ path: string; lists: SessionList[]; failure?: RequestFailure }>({
    path,
    lists: [],
  })
  const lists = more.path === path ? more.lists : []
  isFirstAlone.current = lists.length === 0
  const last = lists.at(-1) ?? first.data
  const cursor = last?.pagination.next_cursor
  const rows = unique([...(first.data?.data ?? []), ...lists.flatMap(({ data }) => data)])
  useRowKeys(rows, open)
  const load = async () => {
    try {
      const list = await send<SessionList>(`${path}&cursor=${encodeURIComponent(cursor ?? '')}`)
      setMore({ path, lists: [...lists, list] })
    } catch (failure) {
      if (failure instanceof RequestFailure) setMore({ path, lists, failure })
    }
  }
  return (
    <section aria-label="List">
      <div class="list-tools">
        <CsvButton key={listed} path={listed} />
      </div>
      <Loaded answer={first}>
        {() => (rows.length === 0 && !cursor ? <Empty query={query} /> : <Rows rows={rows} open={open} />)}
      </Loaded>
      {more.failure && <p class="note bad">{more.failure.message}</p>}
      {cursor && (
        <button type="button" onClick={load}>
          Load more
        </button>
      )}
      <ApiRequest paths={[path]} />
    </section>
  )
}

function unique(rows: ListedSessionRow[]): ListedSessionRow[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()]
}

function Empty({ query }: { query: URLSearchParams }) {
  const isFiltered = [...filtersIn(query)].length > 0
  return (
    <div class="note">
      <strong>No sessions{isFiltered ? ' meet these filters' : ''} within this time.</strong>
      <p>
        {isFiltered ? (
          <a href={hrefOf({ page: 'sessions' })}>Clear all filters</a>
        ) : (
          <>
            Look at a <a href={hrefWith({ last: '30d', since: null, until: null })}>longer time</a>, or make
            one on the <a href="/demo">demo page</a>.
          </>
        )}
      </p>
    </div>
  )
}

function useRowKeys(rows: ListedSessionRow[], open: string | null): void {
  const ids = rows.map(({ id }) => id)
  usePageKeys(
    (event) => {
      const step = { j: 1, k: -1 }[event.key]
      if (event.key === '/') {
        event.preventDefault()
        document.getElementById('search')?.focus()
      }
      if (event.key === 'Escape' && open) goTo(hrefWith({ open: null }))
      if (event.key === 'Enter' && open && event.target === document.body)
        goTo(hrefOf({ page: 'sessions', id: open }))
      const next = step && ids[open ? ids.indexOf(open) + step : 0]
      if (next) goTo(hrefWith({ open: next }), { replace: open !== null })
    },
    [ids.join(), open],
  )
}
