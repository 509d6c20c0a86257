import { useState } from 'preact/hooks'
import { type ResponseState, send, useResponse } from './api.ts'
import { useChange } from './change.tsx'

interface PageOfList<Row> {
  data: Row[]
  pagination: { next_cursor?: string }
}

export interface ListPages<Row> {
  first: ResponseState<PageOfList<Row>>
  /** Rows of all loaded pages. */
  rows: Row[]
  /** Loads the next page; undefined after the last. */
  loadNext: (() => Promise<void>) | undefined
  failure: string | null
}

/** Loads a list page by page. A refreshed first page drops the others, whose cursors continue the old one. */
export function usePages<Row>(path: string): ListPages<Row> {
  const first = useResponse<PageOfList<Row>>(path)
  const [laterPages, setLaterPages] = useState<{
    after?: PageOfList<Row>
    pages: PageOfList<Row>[]
  }>({
    pages: [],
  })
  const { run, failure } = useChange()
  const { data: firstPage } = first
  const pages = firstPage
    ? [firstPage, ...(laterPages.after === firstPage ? laterPages.pages : [])]
    : []
  const cursor = pages.at(-1)?.pagination.next_cursor
  const loadAfter = (from: string) =>
    run(async () => {
      const page = await send<PageOfList<Row>>(`${path}&cursor=${encodeURIComponent(from)}`)
      if (firstPage) setLaterPages({ after: firstPage, pages: [...pages.slice(1), page] })
    })
  return {
    first,
    failure,
    rows: pages.flatMap(({ data }) => data),
    loadNext: cursor === undefined ? undefined : () => loadAfter(cursor),
  }
}
