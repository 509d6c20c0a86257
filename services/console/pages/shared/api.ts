import { useLayoutEffect, useState } from 'preact/hooks'
import { place } from './address.ts'
import { changedAt, mustBeNew, noteChange } from './changed.ts'
import { person } from './person.ts'
import { repeatAfter } from './repeat.ts'
import { createSharedWork } from './shared-work.ts'

interface Refused {
  status: number
  code: string
  requestId: string | null
  mergedInto?: string | null
}

/** What the server answered instead, or that it did not answer (status 0). */
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

/** One request of `/console/api`, answered as `/v1` answers it. Throws a `RequestFailure`. */
export async function send<T>(path: string, sending: Sending = {}): Promise<T> {
  const { response, answer } = await exchange(path, sending)
  if (response.ok) return answer
  // Before it is known who is logged in, a link may still do that.
  if (response.status === 401 && path !== '/login' && person.value) person.value = null
  throw failureOf(response, answer)
}

const share = createSharedWork<Awaited<ReturnType<typeof exchangeOnce>>>()
const ahead = new Map<string, ReturnType<typeof exchangeOnce>>()

const keyOf = (path: string) => `${place.value?.environment} ${changedAt()} ${path}`

/** Asks for what a page will want. Its answer is for whoever asks for the same first. */
export function askAhead(path: string): void {
  const answer = exchangeOnce(path, {})
  answer.catch(() => {})
  ahead.set(keyOf(path), answer)
}

/** Parts of a page that read the same at the same time share a request. */
async function exchange(path: string, { method = 'GET', ...sending }: Sending) {
  if (method === 'GET') {
    const key = keyOf(path)
    const early = ahead.get(key)
    ahead.delete(key)
    return share(key, (signal) => early ?? exchangeOnce(path, { method, signal }), sending.signal)
  }
  try {
    return await exchangeOnce(path, { method, ...sending })
  } finally {
    // Also where no answer came, because it may be done all the same.
    noteChange()
  }
}

async function exchangeOnce(path: string, { method = 'GET', body, signal: ending }: Sending) {
  const unanswered = (error: unknown): never => {
    if (ending?.aborted) throw error
    throw new RequestFailure('The server did not answer.', {
      status: 0,
      code: 'unreachable',
      requestId: null,
    })
  }
  const response = await fetch(`/console/api${path}`, {
    method,
    headers: {
      'tidegate-environment': place.value?.environment ?? 'live',
      ...(mustBeNew() && { 'cache-control': 'no-cache' }),
      ...(method !== 'GET' && person.value && { 'x-csrf-token': person.value.csrf_token }),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
    ...(ending && { signal: ending }),
  }).catch(unanswered)
  // A body may break off. What refuses needs none.
  const noBody = response.ok ? unanswered : () => null
  const answer = response.status === 204 ? null : await response.json().catch(noBody)
  return { response, answer }
}

function failureOf(
  { status, headers }: Response,
  answer: { error?: { code?: string; message?: string; details?: { merged_into?: string } } } | null,
) {
  const {
    code = 'unknown',
    message = `The server answered with status ${status}.`,
    details,
  } = answer?.error ?? {}
  const mergedInto = details?.merged_into ?? null
  return new RequestFailure(message, { status, code, requestId: headers.get('x-request-id'), mergedInto })
}

export interface AnswerState<T> {
  /** The newest answer. It stays while another one is on its way. */
  data: T | undefined
  /** Of the request that was answered last. */
  path: string
  failure: RequestFailure | undefined
  /** Also where it is asked again, but not at each repetition, at which nothing is to flicker. */
  isLoading: boolean
  /** Asks again. */
  reload: () => void
}

interface Repeating {
  everyMs?: number
  /** Whether each wait is twice as long as the one before, up to ten minutes. */
  slowsDown?: boolean
  /** Asked each time: whether it is to be asked again. */
  mayRepeat?: () => boolean
}

/** Answers a GET, and asks again every `everyMs` while the page is visible. */
export function useAnswer<T>(
  path: string,
  { everyMs, slowsDown = false, mayRepeat = () => true }: Repeating = {},
): AnswerState<T> {
  const environment = place.value?.environment
  const [state, setState] = useState<Omit<AnswerState<T>, 'reload'>>({
    path,
    data: undefined,
    failure: undefined,
    isLoading: true,
  })
  const [round, setRound] = useState(0)
  // Before the page is painted, because that takes longer than many an answer.
  useLayoutEffect(() => {
    const ending = new AbortController()
    const ask = async () => {
      try {
        const data = await send<T>(path, { signal: ending.signal })
        setState({ path, data, failure: undefined, isLoading: false })
      } catch (failure) {
        if (ending.signal.aborted || !(failure instanceof RequestFailure)) return
        // What another request answered says nothing of this one.
        setState(({ data, ...before }) => ({
          ...{ path, failure, isLoading: false },
          data: before.path === path ? data : undefined,
        }))
      }
    }
    setState((before) => ({ ...before, isLoading: true }))
    void ask()
    const repeat = () => document.visibilityState === 'visible' && mayRepeat() && ask()
    const stop = everyMs ? repeatAfter(repeat, { everyMs, slowsDown }) : () => {}
    return () => {
      ending.abort()
      stop()
    }
  }, [path, environment, everyMs, round])
  return { ...state, reload: () => setRound((before) => before + 1) }
}
