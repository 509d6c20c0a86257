import { useState } from 'preact/hooks'
import { exact } from '../shared/format.ts'

interface LoadMoreProps {
  /** How far back sessions were read; nothing where each page is found whole. */
  readTo: string | null | undefined
  isEmpty: boolean
  load: () => Promise<void>
}

/** A button that reads on, and how far the list was read: with a rare filter a page may be short, or have no row at all. */
export function LoadMore({ readTo, isEmpty, load }: LoadMoreProps) {
  const [isBusy, setBusy] = useState(false)
  const read = async () => {
    setBusy(true)
    await load()
    setBusy(false)
  }
  return (
    <div class={isEmpty ? 'note' : ''}>
      {readTo && (
        <p role="status">
          {isEmpty ? 'No session meets the filters since' : 'Read back to'} {exact(readTo)}. What
          was before is not read yet.
        </p>
      )}
      <button type="button" disabled={isBusy} onClick={read}>
        {readTo ? 'Go on reading' : 'Load more'}
      </button>
    </div>
  )
}
