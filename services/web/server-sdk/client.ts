import type {
  ApiErrorDetails,
  Mark,
  MarkRequestInput,
  operations,
  ScoredRequest,
  SessionAggregates,
  SessionDetail,
  SessionSummary,
  VisitorFingerprintDetail,
  VisitorFingerprintSummary,
} from './api.ts'

/** For `whenUnavailable`: the call rejects, so your code rejects requests that it can't check. */
export function failClosed(error: UnavailableError): never {
  throw error
}

/** For `whenUnavailable`: the call resolves to undefined, so your code continues without Tidegate. */
export function failOpen(): undefined {
  return undefined
}

export interface ClientOptions<Fallback> {
  /** Base URL of the server, such as `https://tidegate.example`. */
  url: string
  secretKey: string
  /**
   * Called if Tidegate can't be reached, or still returns 429 or 5xx after all retries. The call then resolves to its
   * result. Pass `failClosed`, `failOpen` or your own function. Lists always reject instead.
   */
  whenUnavailable: (error: UnavailableError) => Fallback
  /** Timeout of one attempt in milliseconds. Default: 5000. */
  timeoutMs?: number
  /** Number of retries after the first attempt. Default: 2. */
  retries?: number
  fetch?: typeof fetch
}

// Also accepts a single value for list parameters.
type Loose<T> = {
  [Name in keyof T]: NonNullable<T[Name]> extends (infer Item)[] ? Item | Item[] : T[Name]
}
type Query<Name extends keyof operations> = Loose<
  NonNullable<operations[Name]['parameters']['query']>
>
type ListQuery<Name extends keyof operations> = Omit<Query<Name>, 'cursor'>
export type RequestToScore =
  operations['scoreRequests']['requestBody']['content']['application/json']['requests'][number]

export interface Client<Fallback> {
  sessions: {
    /** Scope `sessions:read`. */
    get(sessionId: string, query?: Query<'getSession'>): Promise<SessionDetail | Fallback>
    /** Iterates over sessions, newest decision first, fetching pages as needed. Scope `sessions:list`. */
    list(query?: ListQuery<'listSessions'>): AsyncIterableIterator<SessionSummary>
    /** Scope `sessions:list`. */
    count(query?: Query<'countSessions'>): Promise<SessionAggregates | Fallback>
    /** Sets your user id for the session; null clears it. Scope `sessions:update`. */
    setUser(sessionId: string, clientUserId: string | null): Promise<SessionDetail | Fallback>
  }
  visitors: {
    /** Scope `fingerprints:read`. */
    get(visitorId: string): Promise<VisitorFingerprintDetail | Fallback>
    /** Iterates over visitors, fetching pages as needed. Scope `fingerprints:list`. */
    list(
      query?: ListQuery<'listVisitorFingerprints'>,
    ): AsyncIterableIterator<VisitorFingerprintSummary>
  }
  marks: {
    /** Labels sessions with what they turned out to be. Scope `sessions:mark`. */
    create(mark: MarkRequestInput): Promise<Mark | Fallback>
    remove(markId: string): Promise<Mark | Fallback>
  }
  /** Scores 1 to 50 requests of clients that run no JavaScript; results keep the order. Scope `requests:score`. */
  scoreRequests(requests: RequestToScore[]): Promise<ScoredRequest[] | Fallback>
}

/** Error response of the API. Search the server's log for `requestId`. */
export class ApiError extends Error {
  override name = 'ApiError'
  readonly status: number
  /** All codes are listed at `/docs/errors` of the server. */
  readonly code: string
  readonly requestId: string | undefined
  readonly details: ApiErrorDetails | undefined
  /** The same request may succeed later. */
  readonly isRetryable: boolean

  constructor(status: number, error: Partial<ApiFailure>) {
    super(error.message ?? `Tidegate returned status ${status}`)
    this.status = status
    this.code = error.code ?? 'unknown'
    this.requestId = error.request_id
    this.details = error.details
    this.isRetryable = status === 429 || status >= 500 || error.retryable === true
  }
}

interface ApiFailure {
  code: string
  message: string
  request_id: string
  retryable: boolean
  details: ApiErrorDetails
}

/** Tidegate could not be reached, or still returned 429 or 5xx after all retries. `cause` is the last failure. */
export class UnavailableError extends Error {
  override name = 'UnavailableError'
}

interface Call {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  query?: object | undefined
  body?: object
}

interface Page<T> {
  data: T[]
  pagination: { next_cursor?: string }
}

/** Creates a typed client of the REST API. All of your code can share one. */
export function createClient<Fallback>(options: ClientOptions<Fallback>): Client<Fallback> {
  const send = createSender(options)

  async function sendForData<T>(call: Call): Promise<T> {
    const { data } = await send<{ data: T }>(call)
    return data
  }

  function sendOrFallback<T>(call: Call): Promise<T | Fallback> {
    return sendForData<T>(call).catch((error: unknown) => {
      if (error instanceof UnavailableError) return options.whenUnavailable(error)
      throw error
    })
  }

  async function* list<T>(path: string, query: object = {}): AsyncIterableIterator<T> {
    let cursor: string | undefined
    do {
      const page = await send<Page<T>>({ method: 'GET', path, query: { ...query, cursor } })
      yield* page.data
      cursor = page.pagination.next_cursor
    } while (cursor !== undefined)
  }

  return {
    sessions: {
      get: (id, query) =>
        sendOrFallback({ method: 'GET', path: `/v1/sessions/${segment(id)}`, query }),
      list: (query) => list('/v1/sessions', query),
      count: (query) => sendOrFallback({ method: 'GET', path: '/v1/sessions/aggregates', query }),
      setUser: (id, client_user_id) =>
        sendOrFallback({
          method: 'PATCH',
          path: `/v1/sessions/${segment(id)}`,
          body: { client_user_id },
        }),
    },
    visitors: {
      get: (id) => sendOrFallback({ method: 'GET', path: `/v1/fingerprints/${segment(id)}` }),
      list: (query) => list('/v1/fingerprints', query),
    },
    marks: {
      create: (mark) => sendOrFallback({ method: 'POST', path: '/v1/marks', body: mark }),
      remove: (id) => sendOrFallback({ method: 'DELETE', path: `/v1/marks/${segment(id)}` }),
    },
    scoreRequests: (requests) =>
      sendOrFallback({ method: 'POST', path: '/v1/requests/score', body: { requests } }),
  }
}

function segment(id: string): string {
  if (!/^\w+$/.test(id)) throw new TypeError(`not an id: ${JSON.stringify(id)}`)
  return id
}

// A longer Retry-After makes the call fail without further retries.
const maxWaitMs = 30_000

function createSender(options: Omit<ClientOptions<unknown>, 'whenUnavailable'>) {
  const { secretKey, timeoutMs = 5000, retries = 2, fetch: request = fetch } = options
  if (!/^sk_[\x21-\x7e]+$/.test(secretKey))
    throw new TypeError('secretKey must be a secret key (sk_live_… or sk_test_…)')
  if (!(timeoutMs > 0) || !(retries >= 0))
    throw new TypeError('timeoutMs must be above 0, and retries 0 or more')
  const base = baseUrlOf(options.url)

  /** Resolves to the body. Rejects with ApiError or UnavailableError. */
  return async function send<T>({ method, path, query, body }: Call): Promise<T> {
    const url = base + path + queryText(query)
    const init = {
      method,
      // A redirect could send the key to another host, or turn a command into a GET.
      redirect: 'manual' as const,
      headers: {
        authorization: `Bearer ${secretKey}`,
        ...(body && { 'content-type': 'application/json' }),
        // A retry of a completed request returns the first response instead of creating a second mark.
        ...(method !== 'GET' && { 'idempotency-key': crypto.randomUUID() }),
      },
      ...(body && { body: JSON.stringify(body) }),
    }
    for (let attempt = 0; ; attempt++) {
      const outcome = await attemptOnce<T>(() =>
        request(url, { ...init, signal: AbortSignal.timeout(timeoutMs) }),
      )
      if ('body' in outcome) return outcome.body
      const waitMs = outcome.retryAfterMs ?? 200 * 2 ** attempt * (0.5 + Math.random())
      if (attempt >= retries || waitMs > maxWaitMs)
        throw new UnavailableError(`${method} ${path} failed: ${outcome.problem}`, {
          cause: outcome.cause,
        })
      await new Promise((resolve) => setTimeout(resolve, waitMs))
    }
  }
}

function baseUrlOf(text: string): string {
  const { protocol, username, password, search, hash, href } = new URL(text)
  if (!/^https?:$/.test(protocol) || username || password || search || hash)
    throw new TypeError('url must be http or https, without credentials, query or fragment')
  return href.replace(/\/$/, '')
}

type Outcome<T> = { body: T } | { problem: string; cause: unknown; retryAfterMs?: number }

async function attemptOnce<T>(request: () => Promise<Response>): Promise<Outcome<T>> {
  let status = 0
  try {
    const response = await request()
    status = response.status
    const text = await response.text()
    if (response.ok) return { body: JSON.parse(text) }
    const failure = new ApiError(status, errorIn(text))
    if (!failure.isRetryable) throw failure
    const retryAfterMs = retryAfter(response.headers.get('retry-after'))
    return {
      problem: `Tidegate returned status ${status}`,
      cause: failure,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    }
  } catch (cause) {
    if (cause instanceof ApiError) throw cause
    return { problem: status === 0 ? 'Tidegate cannot be reached' : 'truncated response', cause }
  }
}

function errorIn(text: string): Partial<ApiFailure> {
  try {
    const { error } = JSON.parse(text)
    return typeof error === 'object' && error !== null ? error : {}
  } catch {
    // The response may come from a proxy.
    return {}
  }
}

// Parses Retry-After, which is seconds or a date (RFC 9110).
function retryAfter(header: string | null): number | undefined {
  if (header === null) return undefined
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}

function queryText(query: object = {}): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    for (const item of [value].flat()) if (item !== undefined) parameters.append(name, String(item))
  const text = parameters.toString()
  return text && `?${text}`
}
