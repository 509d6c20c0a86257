import { effect, signal } from '@preact/signals'
import { QueryClient, QueryObserver, type QueryObserverResult } from '@tanstack/query-core'
import { useLayoutEffect, useState } from 'preact/hooks'
import { type ErrorDetails, fieldSentences } from '../../../../infra/errors/field-problem.ts'
import { currentPage, serverPath } from './address.ts'
import { person } from './person.ts'

interface Failure {
  status: number
  requestId: string | null
  details?: ErrorDetails
}

/** An error response, or no response (status 0). */
export class RequestFailure extends Error {
  readonly status: number
  readonly requestId: string | null
  readonly details: ErrorDetails
  /** Invalid request fields, each with a sentence that doesn't repeat its name. */
  readonly fields: { name: string; message: string }[]

  constructor(message: string, { status, requestId, details = {} }: Failure) {
    super(message)
    this.status = status
    this.requestId = requestId
    this.details = details
    const sentences = fieldSentences(details)
    this.fields = (details.fields ?? []).map(({ name }, i) => {
      const text = sentences[i]?.slice(name.length).replace(/^:? /, '') ?? ''
      return { name, message: `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.` }
    })
  }
}

/** True from the first request without a response to the next response. */
export const isOffline = signal(false)

interface RequestOptions {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  body?: object
  signal?: AbortSignal
}

/** Responses in memory, by environment and path. The server sends `no-store`, so browsers cache none. */
const cache = new QueryClient()

// The next person to sign in must not see the cached responses.
effect(() => {
  if (person.value === null) cache.clear()
})

/** Refetches all responses on screen and drops the others, canceling requests in flight. */
function refresh(): void {
  cache.removeQueries({ type: 'inactive' })
  void cache.cancelQueries()
  void cache.invalidateQueries()
}

/**
 * Sends a request to the path below `/console/api`, where REST API paths begin with `/v1`. After a mutation, everything
 * on screen is refetched. Throws `RequestFailure`.
 */
export async function callApi<T>(
  path: string,
  { method = 'GET', body, signal }: RequestOptions = {},
): Promise<T> {
  const throwUnreachable = (error: unknown): never => {
    if (signal?.aborted) throw error
    isOffline.value = true
    throw new RequestFailure('The server is not responding.', {
      status: 0,
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
    isOffline.value = false
    // A truncated body matters only if the request succeeded.
    const onBodyError = response.ok ? throwUnreachable : () => null
    const json = response.status === 204 ? null : await response.json().catch(onBodyError)
    if (response.ok) return json
    // While `person` is undefined, a login link may still sign in, so don't show the login form yet.
    if (response.status === 401 && path !== '/login' && person.value) person.value = null
    throw failureOf(response, json)
  } finally {
    // Also after a failure, because the change may have been made. The timeout lets the page leave erased data first.
    if (method !== 'GET') setTimeout(refresh)
  }
}

function failureOf(
  { status, headers }: Response,
  json: { error?: { message?: string; details?: ErrorDetails } } | null,
) {
  const { message = `The server returned status ${status}.`, details } = json?.error ?? {}
  const requestId = headers.get('x-request-id')
  return new RequestFailure(message, { status, requestId, ...(details && { details }) })
}

export interface ResponseState<T> {
  /** Latest data; kept while another path loads. */
  data: T | undefined
  /** Path that `data` belongs to. */
  path: string
  failure: RequestFailure | undefined
  /** False while polling, so that nothing flickers. */
  isLoading: boolean
  reload: () => void
}

const freshMs = 5000
const offlineRetryMs = 3000

/**
 * Returns the state of a GET request, repeated every `pollMs` while the page is visible, even after a failure.
 * Without a response, it is retried and its previous data stays. Responses are shared by path, and cached for `pollMs` or five seconds, so that going back is instant.
 */
export function useResponse<T>(
  path: string,
  { pollMs }: { pollMs?: number | undefined } = {},
): ResponseState<T> {
  const environment = currentPage.value?.environment
  const [response, setResponse] = useState<Pick<ResponseState<T>, 'path' | 'data' | 'failure'>>()
  // A layout effect sends the request before the first paint. Many responses arrive that early.
  useLayoutEffect(() => {
    const observer = new QueryObserver<T, RequestFailure>(cache, {
      queryKey: [environment, path],
      queryFn: ({ signal }) => callApi<T>(path, { signal }),
      staleTime: pollMs ?? freshMs,
      gcTime: pollMs ?? freshMs,
      refetchInterval: ({ state }) =>
        state.error?.status === 0 ? offlineRetryMs : (pollMs ?? false),
      retry: false,
      structuralSharing: false,
      notifyOnChangeProps: ['data', 'error'],
    })
    const update = ({ status, data, error }: QueryObserverResult<T, RequestFailure>) => {
      if (status === 'pending' || error?.status === 0) return
      // Erased or no longer allowed: don't show the cached data.
      const isGone = error?.status === 404 || error?.status === 403
      setResponse({ path, data: isGone ? undefined : data, failure: error ?? undefined })
    }
    const stop = observer.subscribe(update)
    const cached = observer.getCurrentResult()
    // A cached response that is being refetched is stale.
    if (!cached.isFetching) update(cached)
    return stop
  }, [path, environment, pollMs])
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
