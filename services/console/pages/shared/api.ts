import { effect } from '@preact/signals'
import { QueryClient, QueryObserver, type QueryObserverResult } from '@tanstack/query-core'
import { useLayoutEffect, useState } from 'preact/hooks'
import { currentPage } from './address.ts'
import { person } from './person.ts'
import { serverPath } from './server-path.ts'

interface FailureDetails {
  status: number
  code: string
  requestId: string | null
  mergedInto?: string | null
}

/** An error response, or none at all (status 0). */
export class RequestFailure extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | null
  /** Id of the visitor that the requested one was merged into. */
  readonly mergedInto: string | null

  constructor(message: string, { status, code, requestId, mergedInto = null }: FailureDetails) {
    super(message)
    this.mergedInto = mergedInto
    this.status = status
    this.code = code
    this.requestId = requestId
  }
}

interface RequestOptions {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  body?: object
  signal?: AbortSignal
}

/** Responses in memory, by environment and path. The server sends `no-store`, so browsers cache none. */
const cache = new QueryClient()

// The next person who signs in must not see them.
effect(() => {
  if (person.value === null) cache.clear()
})

/** Drops responses that are not shown and refetches the others, canceling requests in flight. */
function refresh(): void {
  cache.removeQueries({ type: 'inactive' })
  void cache.cancelQueries()
  void cache.invalidateQueries()
}

/**
 * Sends a request to `/console/api`, which mirrors `/v1`. A mutation refreshes all responses. Throws a
 * `RequestFailure`.
 */
export async function send<T>(
  path: string,
  { method = 'GET', body, signal }: RequestOptions = {},
): Promise<T> {
  const throwUnreachable = (error: unknown): never => {
    if (signal?.aborted) throw error
    throw new RequestFailure('The server is not responding.', {
      status: 0,
      code: 'unreachable',
      requestId: null,
    })
  }
  try {
    const response = await fetch(`${serverPath}/console/api${path}`, {
      method,
      headers: {
        'tidegate-environment': currentPage.value?.environment ?? 'live',
        ...(method !== 'GET' && person.value && { 'x-csrf-token': person.value.csrf_token }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    }).catch(throwUnreachable)
    // The body may be truncated, which matters only if the request succeeded.
    const onBodyError = response.ok ? throwUnreachable : () => null
    const json = response.status === 204 ? null : await response.json().catch(onBodyError)
    if (response.ok) return json
    // During startup a login link may still sign in.
    if (response.status === 401 && path !== '/login' && person.value) person.value = null
    throw failureOf(response, json)
  } finally {
    // The change may have been made even without a response. The timeout lets the page first leave a view of erased
    // data.
    if (method !== 'GET') setTimeout(refresh)
  }
}

function failureOf(
  { status, headers }: Response,
  json: {
    error?: { code?: string; message?: string; details?: { merged_into?: string } }
  } | null,
) {
  const {
    code = 'unknown',
    message = `The server returned status ${status}.`,
    details,
  } = json?.error ?? {}
  const mergedInto = details?.merged_into ?? null
  return new RequestFailure(message, {
    status,
    code,
    requestId: headers.get('x-request-id'),
    mergedInto,
  })
}

export interface ResponseState<T> {
  /** Newest data; kept while another path loads. */
  data: T | undefined
  /** Path that `data` belongs to. */
  path: string
  failure: RequestFailure | undefined
  /** False while polling, so that nothing flickers. */
  isLoading: boolean
  /** Sends the request again. */
  reload: () => void
}

const freshMs = 5000

/**
 * Returns the state of a GET, which is repeated every `everyMs` while the page is visible, also after a failure. Equal
 * requests share a response. It stays fresh for `everyMs`, or five seconds, during which "back" shows it at once.
 */
export function useResponse<T>(
  path: string,
  { everyMs }: { everyMs?: number | undefined } = {},
): ResponseState<T> {
  const environment = currentPage.value?.environment
  const [response, setResponse] = useState<Pick<ResponseState<T>, 'path' | 'data' | 'failure'>>()
  // Starts before the first paint, because many responses arrive faster than that.
  useLayoutEffect(() => {
    const observer = new QueryObserver<T, RequestFailure>(cache, {
      queryKey: [environment, path],
      queryFn: ({ signal }) => send<T>(path, { signal }),
      staleTime: everyMs ?? freshMs,
      gcTime: everyMs ?? freshMs,
      refetchInterval: everyMs ?? false,
      retry: false,
      structuralSharing: false,
      notifyOnChangeProps: ['data', 'error'],
    })
    const update = ({ status, data, error }: QueryObserverResult<T, RequestFailure>) => {
      if (status === 'pending') return
      // Erased or no longer allowed: don't show the cached data.
      const isGone = error?.status === 404 || error?.status === 403
      setResponse({ path, data: isGone ? undefined : data, failure: error ?? undefined })
    }
    const stop = observer.subscribe(update)
    const cached = observer.getCurrentResult()
    // A response that is being fetched is stale.
    if (!cached.isFetching) update(cached)
    return stop
  }, [path, environment, everyMs])
  return {
    data: response?.data,
    path: response?.path ?? path,
    failure: response?.failure,
    isLoading: response?.path !== path,
    reload() {
      setResponse(undefined)
      void cache.refetchQueries({ queryKey: [environment, path] })
    },
  }
}
