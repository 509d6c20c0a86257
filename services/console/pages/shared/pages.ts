import { useState } from 'preact/hooks'
import { callApi, type ResponseState, useResponse } from './api.ts'
import { useMutation } from './mutation.tsx'

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

/** Loads a list page by page. A refetched first page drops the others, because their cursors continue the old one. */
export function usePages<Row>(path: string): ListPages<Row> {
  const first = useResponse<PageOfList<Row>>(path)
  const [laterPages, setLaterPages] = useState<{
    after?: PageOfList<Row>
    pages: PageOfList<Row>[]
  }>({
    pages: [],
  })
  const { run, failure } = useMutation()
  const { data: firstPage } = first
  const pages = firstPage
    ? [firstPage, ...(laterPages.after === firstPage ? laterPages.pages : [])]
    : []
  const cursor = pages.at(-1)?.pagination.next_cursor
  const loadAfter = (from: string) =>
    run(async () => {
      const page = await callApi<PageOfList<Row>>(`${path}&cursor=${encodeURIComponent(from)}`)
      if (firstPage) setLaterPages({ after: firstPage, pages: [...pages.slice(1), page] })
    })
  return {
    first,
    failure,
    rows: pages.flatMap(({ data }) => data),
    loadNext: cursor === undefined ? undefined : () => loadAfter(cursor),
  }
}
