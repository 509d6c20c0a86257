import { useState } from 'preact/hooks'
import { type AnswerState, send, useAnswer } from './api.ts'
import { useChange } from './change.tsx'

interface PageOfList<Row> {
  data: Row[]
  pagination: { next_cursor?: string }
}

export interface ListPages<Row> {
  first: AnswerState<PageOfList<Row>>
  /** Of all pages that were read. */
  rows: Row[]
  /** Reads the next page; undefined where there is none. */
  readOn: (() => Promise<void>) | undefined
  failure: string | null
}

/** A list of the API, page by page. Reading the first one anew ends the others, because they go on from the old one. */
export function usePages<Row>(path: string): ListPages<Row> {
  const first = useAnswer<PageOfList<Row>>(path)
  const [later, setLater] = useState<{ behind?: PageOfList<Row>; pages: PageOfList<Row>[] }>({
    pages: [],
  })
  const { run, failure } = useChange()
  const { data: begin } = first
  const pages = begin ? [begin, ...(later.behind === begin ? later.pages : [])] : []
  const cursor = pages.at(-1)?.pagination.next_cursor
  const readOn = (from: string) =>
    run(async () => {
      const page = await send<PageOfList<Row>>(`${path}&cursor=${encodeURIComponent(from)}`)
      if (begin) setLater({ behind: begin, pages: [...pages.slice(1), page] })
    })
  return {
    first,
    failure,
    rows: pages.flatMap(({ data }) => data),
    readOn: cursor === undefined ? undefined : () => readOn(cursor),
  }
}
