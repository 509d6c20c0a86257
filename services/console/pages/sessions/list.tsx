import { useEffect, useState } from 'preact/hooks'
import type { SessionList, SessionSummary } from '../../../readback/schemas/sessions.ts'
import { newMarks } from '../session/label-buttons.tsx'
import { hrefOf, hrefWith, serverPath } from '../shared/address.ts'
import { callApi, useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { formatDateTime } from '../shared/format.ts'
import { useFilteredPath } from '../shared/list-filters.tsx'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { BulkBar } from './bulk-bar.tsx'
import { orderParameters, sortRows } from './columns.tsx'
import { filterChanges, filterParameters } from './fields.ts'
import { mergeNewest } from './merge-newest.ts'
import { SessionRows } from './rows.tsx'
import { useRowKeys, useSelection } from './selection.ts'
import './sessions.css'

const pageSize = 50

/** Returns the path of the list's requests, without `limit`. */
export function useListPath(query: URLSearchParams): string {
  const path = useFilteredPath('/v1/sessions', query, [...new Set(filterParameters(query).keys())])
  const order = orderParameters(query)
  return order.length > 0 ? `${path}&${new URLSearchParams(order)}` : path
}

interface Pages {
  /** Path of the first page; undefined before it is loaded. */
  path: string | undefined
  lists: SessionList[]
}

interface ListProps {
  query: URLSearchParams
  listPath: string
}

/** The list of sessions. New ones are inserted by a button, so that rows never move by themselves. */
export function List({ query, listPath }: ListProps) {
  const path = `${listPath}&limit=${pageSize}`
  // Sorting by score reads every session of the period.
  const pollMs = path.includes('sort=risk_score') ? 60_000 : 5000
  const first = useResponse<SessionList>(path, { pollMs })
  const [pages, setPages] = useState<Pages>({ path: undefined, lists: [] })
  const { run, isRunning, failure } = useMutation()
  const { data: newest, path: loadedPath } = first
  const showNewest = () => newest && setPages({ path: loadedPath, lists: [newest] })
  // Pages loaded after an empty first page are kept.
  const isEmpty =
    pages.path !== loadedPath || (pages.lists.length < 2 && !pages.lists[0]?.data.length)
  useEffect(() => {
    if (isEmpty) showNewest()
  }, [newest, loadedPath, isEmpty])
  const lists = pages.path === loadedPath ? pages.lists : newest ? [newest] : []
  const merged = mergeNewest(
    lists.flatMap(({ data }) => data.map(withNewMark)),
    newest?.data ?? [],
  )
  const rows = sortRows(merged.rows, query)
  const selection = useSelection()
  useRowKeys(
    rows.map(({ id }) => id),
    selection,
  )
  const last = lists.at(-1)
  const [cursor, readTo] = [last?.pagination.next_cursor, last?.meta.read_to]
  const loadNext = (cursor: string) =>
    run(async () => {
      const list = await callApi<SessionList>(`${path}&cursor=${encodeURIComponent(cursor)}`)
      setPages({ path, lists: [...lists, list] })
    })
  return (
    <section class="sessions-list" aria-label="List">
      <div class="new-rows" role="status">
        {merged.newCount > 0 && (
          <button type="button" class="button" onClick={showNewest}>
            {merged.newCount} new
          </button>
        )}
      </div>
      <Loaded response={first} lines={20}>
        {() =>
          rows.length > 0 ? (
            <SessionRows {...{ rows, query, selection }} />
          ) : cursor ? null : (
            <Empty query={query} />
          )
        }
      </Loaded>
      {first.failure?.status === 422 && query.has('sort') && (
        <a href={hrefWith({ sort: null })}>Sort by time</a>
      )}
      <MutationFailure failure={failure} />
      {cursor !== undefined && (
        <p class={rows.length > 0 ? '' : 'note'}>
          <button type="button" disabled={isRunning} onClick={() => loadNext(cursor)}>
            {readTo ? 'Continue the search' : 'Load more'}
          </button>{' '}
          {/* With rare filters, a page may be empty. */}
          {readTo && <span role="status">Searched up to {formatDateTime(readTo)}</span>}
        </p>
      )}
      <ApiRequest paths={[path]} />
      <BulkBar {...{ rows, selection }} />
    </section>
  )
}

function withNewMark(row: SessionSummary): SessionSummary {
  const mark = newMarks.value.get(row.id)
  return mark && mark.marked_at > (row.mark?.marked_at ?? '') ? { ...row, mark } : row
}

function Empty({ query }: { query: URLSearchParams }) {
  const search = query.get('search')
  const isFiltered = [...filterParameters(query)].length > 0
  const longer = <a href={hrefWith({ last: '30d', since: null, until: null })}>longer period</a>
  return (
    <div class="note">
      <strong>No sessions{isFiltered && ' match these filters'} in this period</strong>
      <p>
        {isFiltered ? (
          <>
            <a href={hrefWith({ ...filterChanges([]), search: null })}>
              {search ? 'Clear search and filters' : 'Clear all filters'}
            </a>
            , or show a {longer}.
          </>
        ) : (
          <>
            Show a {longer}, <a href={hrefOf({ page: 'settings' })}>send sessions</a> from your
            site, or create a session on the <a href={`${serverPath}/demo`}>demo page</a>.
          </>
        )}
      </p>
    </div>
  )
}
