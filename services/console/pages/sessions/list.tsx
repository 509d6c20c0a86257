import { useEffect, useMemo, useState } from 'preact/hooks'
import type { SessionList, SessionSummary } from '../../../readback/schemas/sessions.ts'
import { goTo, hrefOf, hrefWith } from '../shared/address.ts'
import { RequestFailure, send, useAnswer } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { usePageKeys } from '../shared/keys.ts'
import { serverPath } from '../shared/server-path.ts'
import { now, spanOf } from '../shared/span.ts'
import { Loaded } from '../shell/states.tsx'
import { ColumnChoice } from './column-choice.tsx'
import { CsvButton } from './csv-button.tsx'
import { filtersIn, requestParameters } from './fields.ts'
import { LoadMore } from './load-more.tsx'
import { withNewest } from './new-rows.ts'
import { SessionRows } from './rows.tsx'
import './sessions.css'

const pageSize = 50

// Where a relative time begins is when the list was asked for, because its pages go on from there.
function usePath(query: URLSearchParams): string {
  const question = new URLSearchParams(query)
  for (const name of ['open', 'group', 'columns']) question.delete(name)
  return useMemo(() => {
    const span = spanOf(query, now.peek())
    const parameters = requestParameters(query, span)
    if (span.last) parameters.delete('until')
    return `/v1/sessions?${parameters}`
  }, [question.toString()])
}

interface Pages {
  /** Of the first page; undefined before it. */
  path: string | undefined
  lists: SessionList[]
  failure?: RequestFailure
}

/** Sessions one by one. What comes meanwhile is announced, and inserted by a button, so that nothing moves by itself. */
export function List({ query, open }: { query: URLSearchParams; open: string | null }) {
  const listed = usePath(query)
  const path = `${listed}&limit=${pageSize}`
  const first = useAnswer<SessionList>(path, { everyMs: 5000 })
  const [pages, setPages] = useState<Pages>({ path: undefined, lists: [] })
  const { data: newest, path: answered } = first
  const insert = () => newest && setPages({ path: answered, lists: [newest] })
  // What was read behind an empty page stays.
  const isEmpty =
    pages.path !== answered || (pages.lists.length < 2 && !pages.lists[0]?.data.length)
  useEffect(() => {
    if (isEmpty) insert()
  }, [newest, answered, isEmpty])
  const lists = pages.path === answered ? pages.lists : newest ? [newest] : []
  const { rows, added } = withNewest(
    lists.flatMap(({ data }) => data),
    newest?.data ?? [],
  )
  const last = lists.at(-1)
  const cursor = last?.pagination.next_cursor
  useRowKeys(rows, open)
  const load = async () => {
    try {
      const list = await send<SessionList>(`${path}&cursor=${encodeURIComponent(cursor ?? '')}`)
      setPages({ path, lists: [...lists, list] })
    } catch (failure) {
      if (failure instanceof RequestFailure) setPages({ path, lists, failure })
    }
  }
  return (
    <section aria-label="List">
      <div class="list-tools">
        <CsvButton key={listed} path={listed} />
        <ColumnChoice query={query} />
        <span role="status">
          {added > 0 && (
            <button type="button" class="button" onClick={insert}>
              {added} new
            </button>
          )}
        </span>
      </div>
      <Loaded answer={first}>
        {() =>
          rows.length > 0 ? (
            <SessionRows {...{ rows, open, query }} />
          ) : cursor ? null : (
            <Empty query={query} />
          )
        }
      </Loaded>
      {pages.failure && <p class="note bad">{pages.failure.message}</p>}
      {cursor && <LoadMore readTo={last?.meta.read_to} isEmpty={rows.length === 0} load={load} />}
      <ApiRequest paths={[path]} />
    </section>
  )
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
            Look at a <a href={hrefWith({ last: '30d', since: null, until: null })}>longer time</a>,
            or make one on the <a href={`${serverPath}/demo`}>demo page</a>.
          </>
        )}
      </p>
    </div>
  )
}

function useRowKeys(rows: SessionSummary[], open: string | null): void {
  const ids = rows.map(({ id }) => id)
  usePageKeys(
    (event) => {
      const step = { j: 1, k: -1 }[event.key]
      // It closes one thing at a time.
      const hasMenu = document.querySelector(':popover-open') !== null
      if (event.key === 'Escape' && open && !hasMenu) goTo(hrefWith({ open: null }))
      if (event.key === 'Enter' && open && event.target === document.body)
        goTo(hrefOf({ page: 'sessions', id: open }))
      const next = step && ids[open ? ids.indexOf(open) + step : 0]
      if (next) goTo(hrefWith({ open: next }), { replace: open !== null })
    },
    [ids.join(), open],
  )
}
