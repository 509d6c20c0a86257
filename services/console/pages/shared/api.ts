import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { place } from './address.ts'

export interface LoggedInPerson {
  id: string
  name: string
  role: string | null
  scopes: string[]
  organization: { id: string; name: string }
  environments: string[]
  csrf_token: string
}

/** Who is logged in: undefined before that is known, null where nobody is. */
export const person = signal<LoggedInPerson | null | undefined>(undefined)

/** What the server answered instead, or that it did not answer (status 0). */
export class RequestFailure extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | null

  constructor(
    message: string,
    { status, code, requestId }: { status: number; code: string; requestId: string | null },
  ) {
    super(message)
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

/** One request of `/console/api`, answered as `/v1` answers it. Throws a `RequestFailure`. */
export async function send<T>(
  path: string,
  { method = 'GET', body, signal: ending }: Sending = {},
): Promise<T> {
  const response = await fetch(`/console/api${path}`, {
    method,
    headers: {
      'tidegate-environment': place.value?.environment ?? 'live',
      ...(method !== 'GET' && person.value && { 'x-csrf-token': person.value.csrf_token }),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
    ...(ending && { signal: ending }),
  }).catch((error: unknown) => {
    if (ending?.aborted) throw error
    throw new RequestFailure('The server did not answer.', {
      status: 0,
      code: 'unreachable',
      requestId: null,
    })
  })
  const answer = response.status === 204 ? null : await response.json().catch(() => null)
  if (response.ok) return answer
  if (response.status === 401 && path !== '/login') person.value = null
  throw failureOf(response, answer)
}

function failureOf(
  { status, headers }: Response,
  answer: { error?: { code?: string; message?: string } } | null,
) {
  const { code = 'unknown', message = `The server answered with status ${status}.` } = answer?.error ?? {}
  return new RequestFailure(message, { status, code, requestId: headers.get('x-request-id') })
}

export interface AnswerState<T> {
  /** The newest answer. It stays while another one is on its way. */
  data: T | undefined
  failure: RequestFailure | undefined
  isLoading: boolean
  /** Asks again. */
  reload: () => void
}

/** Answers a GET, and asks again every `everyMs` while the page is visible. null asks nothing. */
export function useAnswer<T>(path: string | null, { everyMs }: { everyMs?: number } = {}): AnswerState<T> {
  const environment = place.value?.environment
  const [state, setState] = useState<Omit<AnswerState<T>, 'reload'>>({
    data: undefined,
    failure: undefined,
    isLoading: true,
  })
  const [round, setRound] = useState(0)
  useEffect(() => {
    if (path === null) return
    const ending = new AbortController()
    const ask = async () => {
      setState((before) => ({ ...before, isLoading: true }))
      try {
        const data = await send<T>(path, { signal: ending.signal })
        setState({ data, failure: undefined, isLoading: false })
      } catch (error) {
        if (ending.signal.aborted || !(error instanceof RequestFailure)) return
        setState((before) => ({ data: before.data, failure: error, isLoading: false }))
      }
    }
    void ask()
    const timer = everyMs && setInterval(() => document.visibilityState === 'visible' && ask(), everyMs)
    return () => {
      ending.abort()
      if (timer) clearInterval(timer)
    }
  }, [path, environment, everyMs, round])
  return { ...state, reload: () => setRound((before) => before + 1) }
}
