import { effect } from '@preact/signals'
import { QueryClient, QueryObserver, type QueryObserverResult } from '@tanstack/query-core'
import { useLayoutEffect, useState } from 'preact/hooks'
import { place } from './address.ts'
import { person } from './person.ts'
import { serverPath } from './server-path.ts'

interface Refused {
  status: number
  code: string
  requestId: string | null
  mergedInto?: string | null
}

/** A refusal of the server, or no answer from it (status 0). */
export class RequestFailure extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | null
  /** The visitor that the one asked for was merged into. */
  readonly mergedInto: string | null

  constructor(message: string, { status, code, requestId, mergedInto = null }: Refused) {
    super(message)
    this.mergedInto = mergedInto
    this.status = status
    this.code = code
    this.requestId = requestId
  }
}

interface Sending {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  body?: object
  signal?: AbortSignal
}

/** Answers in the page's memory, by environment and path. The server lets no browser store them. */
const answers = new QueryClient()

// The next person who signs in must not see them.
effect(() => {
  if (person.value === null) answers.clear()
})

/** Drops the answers that are not shown, and asks again for the others, even if an older answer is on its way. */
function refresh(): void {
  answers.removeQueries({ type: 'inactive' })
  void answers.cancelQueries()
  void answers.invalidateQueries()
}

/** Sends a request to `/console/api`, which answers as `/v1` does. A change refreshes all answers. Throws a `RequestFailure`. */
export async function send<T>(
  path: string,
  { method = 'GET', body, signal }: Sending = {},
): Promise<T> {
  const unanswered = (error: unknown): never => {
    if (signal?.aborted) throw error
    throw new RequestFailure('The server did not answer.', {
      status: 0,
      code: 'unreachable',
      requestId: null,
    })
  }
  try {
    const response = await fetch(`${serverPath}/console/api${path}`, {
      method,
      headers: {
        'tidegate-environment': place.value?.environment ?? 'live',
        ...(method !== 'GET' && person.value && { 'x-csrf-token': person.value.csrf_token }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    }).catch(unanswered)
    // A body may break off. A refusal needs none.
    const noBody = response.ok ? unanswered : () => null
    const answer = response.status === 204 ? null : await response.json().catch(noBody)
    if (response.ok) return answer
    // Before it is known who is logged in, a link may still do that.
    if (response.status === 401 && path !== '/login' && person.value) person.value = null
    throw failureOf(response, answer)
  } finally {
    // Even without an answer the change may have been made. First let the page leave what the change erased.
    if (method !== 'GET') setTimeout(refresh)
  }
}

function failureOf(
  { status, headers }: Response,
  answer: {
    error?: { code?: string; message?: string; details?: { merged_into?: string } }
  } | null,
) {
  const {
    code = 'unknown',
    message = `The server answered with status ${status}.`,
    details,
  } = answer?.error ?? {}
  const mergedInto = details?.merged_into ?? null
  return new RequestFailure(message, {
    status,
    code,
    requestId: headers.get('x-request-id'),
    mergedInto,
  })
}

export interface AnswerState<T> {
  /** The newest answer. It stays while that of another path is on its way. */
  data: T | undefined
  /** Path of the request that was answered last. */
  path: string
  failure: RequestFailure | undefined
  /** False at repetitions, at which nothing is to flicker. */
  isLoading: boolean
  /** Asks again. */
  reload: () => void
}

const freshMs = 5000

/**
 * Answers a GET, and repeats it every `everyMs` while the page is visible, also after a failure. Equal requests share an
 * answer. It is fresh for that long, or for five seconds, and "back" shows it at once as long as it is.
 */
export function useAnswer<T>(
  path: string,
  { everyMs }: { everyMs?: number | undefined } = {},
): AnswerState<T> {
  const environment = place.value?.environment
  const [answered, setAnswered] = useState<Pick<AnswerState<T>, 'path' | 'data' | 'failure'>>()
  // Before the page is painted, because that takes longer than many an answer.
  useLayoutEffect(() => {
    const observer = new QueryObserver<T, RequestFailure>(answers, {
      queryKey: [environment, path],
      queryFn: ({ signal }) => send<T>(path, { signal }),
      staleTime: everyMs ?? freshMs,
      gcTime: everyMs ?? freshMs,
      refetchInterval: everyMs ?? false,
      retry: false,
      structuralSharing: false,
      notifyOnChangeProps: ['data', 'error'],
    })
    const show = ({ status, data, error }: QueryObserverResult<T, RequestFailure>) => {
      if (status === 'pending') return
      // Erased, or no longer allowed, so it is not shown from memory.
      const isGone = error?.status === 404 || error?.status === 403
      setAnswered({ path, data: isGone ? undefined : data, failure: error ?? undefined })
    }
    const stop = observer.subscribe(show)
    const remembered = observer.getCurrentResult()
    // Otherwise it is not fresh.
    if (!remembered.isFetching) show(remembered)
    return stop
  }, [path, environment, everyMs])
  return {
    data: answered?.data,
    path: answered?.path ?? path,
    failure: answered?.failure,
    isLoading: answered?.path !== path,
    reload() {
      setAnswered(undefined)
      void answers.refetchQueries({ queryKey: [environment, path] })
    },
  }
}
