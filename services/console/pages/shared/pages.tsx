import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'
import { Loaded } from '../shell/loaded.tsx'
import { callApi, type ResponseState, useResponse } from './api.ts'
import { DataTable, type DataTableProps } from './data-table.tsx'
import { MutationFailure, useMutation } from './mutation.tsx'

interface PageOfList<Row> {
  data: Row[]
  /** Absent from lists of one page. */
  pagination?: { next_cursor?: string }
}

export interface ListPages<Row> {
  first: ResponseState<unknown>
  /** Rows of all loaded pages. */
  rows: Row[]
  /** Loads the next page; undefined after the last. */
  loadNext: (() => Promise<void>) | undefined
  failure: string | null
}

/**
 * Loads a list page by page. A refetched first page drops the others, because their cursors continue the old one. So it
 * is polled only until another page is loaded.
 */
export function usePages<Row>(path: string, { pollMs }: { pollMs?: number } = {}): ListPages<Row> {
  const [laterPages, setLaterPages] = useState<PageOfList<Row>[]>([])
  const first = useResponse<PageOfList<Row>>(path, {
    pollMs: laterPages.length === 0 ? pollMs : undefined,
  })
  useLayoutEffect(() => setLaterPages([]), [first.data])
  const { run, failure } = useMutation()
  const pages = first.data ? [first.data, ...laterPages] : []
  const cursor = pages.at(-1)?.pagination?.next_cursor
  const loadAfter = (from: string) =>
    run(async () => {
      const page = await callApi<PageOfList<Row>>(
        `${first.path}&cursor=${encodeURIComponent(from)}`,
      )
      setLaterPages((current) => (current === laterPages ? [...laterPages, page] : current))
    })
  return {
    first,
    failure,
    rows: pages.flatMap(({ data }) => data),
    loadNext: cursor === undefined ? undefined : () => loadAfter(cursor),
  }
}

/** A button that loads the next page, if there is one. */
export function NextPageButton<Row>({ loadNext, failure }: ListPages<Row>) {
  return (
    <>
      <MutationFailure failure={failure} />
      {loadNext && (
        <div>
          <button type="button" onClick={loadNext}>
            Load more
          </button>
        </div>
      )}
    </>
  )
}

interface ListTableProps<Row> extends Omit<DataTableProps<Row>, 'rows'> {
  list: ListPages<Row>
  /** Shown in place of an empty table. */
  empty?: ComponentChildren
}

/** A list as a table, with a button that loads the next page. */
export function ListTable<Row>({ list, empty, ...table }: ListTableProps<Row>) {
  return (
    <>
      <Loaded response={list.first} lines={8}>
        {() =>
          list.rows.length === 0 && empty ? empty : <DataTable rows={list.rows} {...table} />
        }
      </Loaded>
      <NextPageButton {...list} />
    </>
  )
}
