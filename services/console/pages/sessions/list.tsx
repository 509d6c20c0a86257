import { useEffect, useMemo, useState } from 'preact/hooks'
import type { SessionList, SessionSummary } from '../../../readback/schemas/sessions.ts'
import { hrefOf, hrefWith, navigate } from '../shared/address.ts'
import { callApi, RequestFailure, useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { usePageKeys } from '../shared/keys.ts'
import { serverPath } from '../shared/server-path.ts'
import { now, spanOf } from '../shared/span.ts'
import { Loaded } from '../shell/loaded.tsx'
import { filterParameters, requestParameters } from './fields.ts'
import { LoadMore } from './load-more.tsx'
import { mergeNewest } from './merge-newest.ts'
import { SessionRows, type SessionRowsProps } from './rows.tsx'
import './sessions.css'

const pageSize = 50

/**
 * Returns the path of the list's requests, without `limit`. A relative period keeps its start while the list is shown,
 * because the cursors depend on it.
 */
export function useListPath(query: URLSearchParams): string {
  const listQuery = new URLSearchParams(query)
  for (const name of ['open', 'group', 'columns']) listQuery.delete(name)
  return useMemo(() => {
    const span = spanOf(query, now.peek())
    const parameters = requestParameters(query, span)
    if (span.last) parameters.delete('until')
    return `/v1/sessions?${parameters}`
  }, [listQuery.toString()])
}

interface Pages {
  /** Path of the first page; undefined before it is loaded. */
  path: string | undefined
  lists: SessionList[]
  failure?: RequestFailure
}

interface ListProps extends Omit<SessionRowsProps, 'rows'> {
  listPath: string
}

/** The list of sessions. New ones are inserted by a button, so that rows never move by themselves. */
export function List({ query, listPath, openSessionId }: ListProps) {
  const path = `${listPath}&limit=${pageSize}`
  const first = useResponse<SessionList>(path, { pollMs: 5000 })
  const [pages, setPages] = useState<Pages>({ path: undefined, lists: [] })
  const { data: newest, path: loadedPath } = first
  const showNewest = () => newest && setPages({ path: loadedPath, lists: [newest] })
  // Pages loaded after an empty first page are kept.
  const isEmpty =
    pages.path !== loadedPath || (pages.lists.length < 2 && !pages.lists[0]?.data.length)
  useEffect(() => {
    if (isEmpty) showNewest()
  }, [newest, loadedPath, isEmpty])
  const lists = pages.path === loadedPath ? pages.lists : newest ? [newest] : []
  const { rows, newCount } = mergeNewest(
    lists.flatMap(({ data }) => data),
    newest?.data ?? [],
  )
  const last = lists.at(-1)
  const cursor = last?.pagination.next_cursor
  useRowKeys(rows, openSessionId)
  const loadNext = async () => {
    try {
      const list = await callApi<SessionList>(`${path}&cursor=${encodeURIComponent(cursor ?? '')}`)
      setPages({ path, lists: [...lists, list] })
    } catch (failure) {
      if (failure instanceof RequestFailure) setPages({ path, lists, failure })
    }
  }
  return (
    <section aria-label="List">
      <span role="status">
        {newCount > 0 && (
          <button type="button" class="button" onClick={showNewest}>
            {newCount} new
          </button>
        )}
      </span>
      <Loaded response={first}>
        {() =>
          rows.length > 0 ? (
            <SessionRows {...{ rows, openSessionId, query }} />
          ) : cursor ? null : (
            <Empty query={query} />
          )
        }
      </Loaded>
      {pages.failure && <p class="note bad">{pages.failure.message}</p>}
      {cursor && (
        <LoadMore readTo={last?.meta.read_to} isEmpty={rows.length === 0} load={loadNext} />
      )}
      <ApiRequest paths={[path]} />
    </section>
  )
}

function Empty({ query }: { query: URLSearchParams }) {
  const isFiltered = [...filterParameters(query)].length > 0
  return (
    <div class="note">
      <strong>No sessions{isFiltered ? ' match these filters' : ''} in this period</strong>
      <p>
        {isFiltered ? (
          <a href={hrefOf({ page: 'sessions' })}>Clear all filters</a>
        ) : (
          <>
            Show a <a href={hrefWith({ last: '30d', since: null, until: null })}>longer period</a>,
            or create a session on the <a href={`${serverPath}/demo`}>demo page</a>.
          </>
        )}
      </p>
    </div>
  )
}

function useRowKeys(rows: SessionSummary[], openSessionId: string | null): void {
  const ids = rows.map(({ id }) => id)
  usePageKeys(
    (event) => {
      const step = { j: 1, k: -1 }[event.key]
      // Escape closes one layer at a time.
      const hasMenu = document.querySelector(':popover-open') !== null
      if (event.key === 'Escape' && openSessionId && !hasMenu) navigate(hrefWith({ open: null }))
      if (event.key === 'Enter' && openSessionId && event.target === document.body)
        navigate(hrefOf({ page: 'sessions', id: openSessionId }))
      const next = step && ids[openSessionId ? ids.indexOf(openSessionId) + step : 0]
      if (next) navigate(hrefWith({ open: next }), { replace: openSessionId !== null })
    },
    [ids.join(), openSessionId],
  )
}
