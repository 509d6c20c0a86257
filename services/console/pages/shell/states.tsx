import type { ComponentChildren } from 'preact'
import type { AnswerState, RequestFailure } from '../shared/api.ts'

/** What to do about a failure, where the content would be. */
function FailureNote({ failure, retry }: { failure: RequestFailure; retry: () => void }) {
  const mayNot = failure.status === 403
  return (
    <div class="note bad" role="alert">
      <strong>{mayNot ? 'Your session may not see this.' : 'This could not be loaded.'}</strong>
      <p>{failure.message}</p>
      {failure.requestId && (
        <p>
          Request <code>{failure.requestId}</code>
        </p>
      )}
      {!mayNot && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

/** The answer's content; the content before it dims while another answer is on its way. */
export function Loaded<T>({
  answer,
  children,
}: {
  answer: AnswerState<T>
  children: (data: T) => ComponentChildren
}) {
  const { data, failure, isLoading, reload } = answer
  return (
    <div class="loaded" aria-busy={isLoading}>
      {failure && <FailureNote failure={failure} retry={reload} />}
      {data !== undefined && children(data)}
      {data === undefined && !failure && <p class="waiting">Loading …</p>}
    </div>
  )
}
