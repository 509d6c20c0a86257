import type { ComponentChildren } from 'preact'
import type { RequestFailure, ResponseState } from '../shared/api.ts'

const titles: Record<number, string> = {
  403: 'You do not have permission to view this.',
  404: 'Not found. It may have been erased or deleted by retention.',
  410: 'This was erased.',
}

interface FailureNoteProps {
  failure: RequestFailure
  retry: () => void
  title?: string
}

/** An error in place of the content, with a retry button if that can help. */
export function FailureNote({ failure, retry, title }: FailureNoteProps) {
  const { status, message, requestId } = failure
  return (
    <div class="note bad" role="alert">
      <strong>{title ?? titles[status] ?? 'This could not be loaded.'}</strong>
      <p>{message}</p>
      {requestId && (
        <p>
          Request <code>{requestId}</code>
        </p>
      )}
      {(status === 0 || status === 429 || status >= 500) && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

interface LoadedProps<T> {
  response: ResponseState<T>
  /** Placeholder lines before the first response. Default: 3. */
  lines?: number
  children: (data: T) => ComponentChildren
}

/** Renders a loaded response. While another one loads, the previous content stays on screen, dimmed. */
export function Loaded<T>({ response, lines = 3, children }: LoadedProps<T>) {
  const { data, failure, isLoading, reload } = response
  return (
    <div class="loaded" aria-busy={isLoading}>
      {failure && <FailureNote failure={failure} retry={reload} />}
      {data !== undefined && children(data)}
      {data === undefined && !failure && <Skeleton lines={lines} />}
    </div>
  )
}

/** Gray lines in place of text that loads. */
export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <div class="waiting">
      <span class="hidden">Loading …</span>
      {Array.from({ length: lines }, (_, i) => (
        <span key={i} class="skeleton" />
      ))}
    </div>
  )
}
