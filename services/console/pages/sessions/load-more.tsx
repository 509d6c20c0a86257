import { useState } from 'preact/hooks'
import { formatDateTime } from '../shared/format.ts'

interface LoadMoreProps {
  /** Sessions were searched back to this time; empty if every page is full. */
  readTo: string | null | undefined
  isEmpty: boolean
  load: () => Promise<void>
}

/** A button for the next page. Also says how far the search got, because with rare filters a page may be empty. */
export function LoadMore({ readTo, isEmpty, load }: LoadMoreProps) {
  const [isBusy, setBusy] = useState(false)
  const loadMore = async () => {
    setBusy(true)
    await load()
    setBusy(false)
  }
  return (
    <div class={isEmpty ? 'note' : ''}>
      {readTo && (
        <p role="status">
          {isEmpty ? 'No match since' : 'Searched back to'} {formatDateTime(readTo)}. Older sessions
          have not been searched yet.
        </p>
      )}
      <button type="button" disabled={isBusy} onClick={loadMore}>
        {readTo ? 'Search older sessions' : 'Load more'}
      </button>
    </div>
  )
}
