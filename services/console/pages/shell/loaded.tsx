import type { ComponentChildren } from 'preact'
import type { RequestFailure, ResponseState } from '../shared/api.ts'

/** An error in place of the content, with a retry button. */
function FailureNote({ failure, retry }: { failure: RequestFailure; retry: () => void }) {
  const isForbidden = failure.status === 403
  return (
    <div class="note bad" role="alert">
      <strong>
        {isForbidden ? 'You do not have permission to view this.' : 'This could not be loaded.'}
      </strong>
      <p>{failure.message}</p>
      {failure.requestId && (
        <p>
          Request <code>{failure.requestId}</code>
        </p>
      )}
      {!isForbidden && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

/** Renders a loaded response. While another one loads, the previous content stays on screen, dimmed. */
export function Loaded<T>({
  response,
  children,
}: {
  response: ResponseState<T>
  children: (data: T) => ComponentChildren
}) {
  const { data, failure, isLoading, reload } = response
  return (
    <div class="loaded" aria-busy={isLoading}>
      {failure && <FailureNote failure={failure} retry={reload} />}
      {data !== undefined && children(data)}
      {data === undefined && !failure && <p class="waiting">Loading …</p>}
    </div>
  )
}
