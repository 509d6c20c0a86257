import type { Bytes } from './protocol.ts'

export interface FetchRequest {
  method: 'POST'
  headers: Record<string, string>
  body: Bytes
  /** Needed to send the continuity cookie, which is a third-party cookie on customers' pages. */
  credentials: 'include'
}

export type FetchLike = (url: string, request: FetchRequest) => Promise<FetchResponse>

interface FetchResponse {
  status: number
  headers: { get(name: string): string | null }
  json(): Promise<unknown>
}

const maxRetryAfterMs = 60_000

export interface RetryOptions {
  attempts?: number
  /** Delay before the second attempt (default 250), doubled each time. Retry-After takes precedence, up to a minute. */
  delayMs?: number
  wait?: (ms: number) => Promise<void>
}

/** An error response of the server, or `network` with status 0 if there was no response. */
export class CollectError extends Error {
  readonly code: string
  readonly status: number
  readonly retryable: boolean
  readonly nextAction: string | undefined
  readonly requestId: string | undefined

  constructor(status: number, envelope: ErrorEnvelope, options?: ErrorOptions) {
    super(envelope.message, options)
    this.name = 'CollectError'
    this.status = status
    this.code = envelope.code
    this.retryable = envelope.retryable
    this.requestId = envelope.request_id
    const isReset = envelope.code === 'transport.session_reset_required'
    this.nextAction = isReset ? 'new_session' : envelope.details?.next_action
  }
}

interface ErrorEnvelope {
  code: string
  message: string
  retryable: boolean
  request_id?: string
  details?: { next_action?: string }
}

interface TransportOptions {
  endpoint: string
  publishableKey: string
  fetch: FetchLike
  headers?: Record<string, string>
  retry?: RetryOptions
}

export interface Transport {
  postJson<T>(path: string, body: Bytes): Promise<T>
  postBytes<T>(path: string, body: Bytes, headers: Record<string, string>): Promise<T>
}

/**
 * Creates a transport that retries if the response was lost or the server was temporarily unable to accept the request.
 */
export function createTransport(options: TransportOptions): Transport {
  const { attempts = 4, delayMs = 250, wait = sleep } = options.retry ?? {}
  const base = options.endpoint.replace(/\/+$/, '')
  // A browser's fetch throws if it is called as a method of another object.
  const fetch = options.fetch

  async function post<T>(path: string, body: Bytes, headers: Record<string, string>): Promise<T> {
    const request: FetchRequest = {
      method: 'POST',
      headers: {
        ...options.headers,
        ...headers,
        Authorization: `Bearer ${options.publishableKey}`,
      },
      body,
      credentials: 'include',
    }
    for (let attempt = 1; ; attempt++) {
      const outcome = await tryOnce<T>(fetch, base + path, request)
      if ('body' in outcome) return outcome.body
      if (!outcome.canRetry || attempt >= attempts) throw outcome.error
      await wait(outcome.afterMs ?? delayMs * 2 ** (attempt - 1))
    }
  }

  return {
    postJson: (path, body) => post(path, body, { 'Content-Type': 'application/json' }),
    postBytes: (path, body, headers) =>
      post(path, body, { ...headers, 'Content-Type': 'application/octet-stream' }),
  }
}

interface Failure {
  error: CollectError
  canRetry: boolean
  afterMs?: number
}

type Outcome<T> = { body: T } | Failure

async function tryOnce<T>(
  fetch: FetchLike,
  url: string,
  request: FetchRequest,
): Promise<Outcome<T>> {
  try {
    const response = await fetch(url, request)
    if (response.status < 300) return { body: (await response.json()) as T }
    return await readFailure(response)
  } catch (cause) {
    const message = 'no response from the server'
    return {
      error: new CollectError(0, { code: 'network', message, retryable: true }, { cause }),
      canRetry: true,
    }
  }
}

// Decides by the status alone, because a proxy may respond with its own error page.
async function readFailure(response: FetchResponse): Promise<Failure> {
  const { status, headers } = response
  const canRetry = status === 408 || status === 429 || status >= 500
  const body: unknown = await response.json().catch(() => undefined)
  const error = new CollectError(status, readEnvelope(body, { status, canRetry }))
  return { error, canRetry, ...retryAfter(headers.get('retry-after')) }
}

function readEnvelope(
  body: unknown,
  { status, canRetry }: { status: number; canRetry: boolean },
): ErrorEnvelope {
  const { error } = (body ?? {}) as { error?: Partial<ErrorEnvelope> }
  const message = `status ${status} without an error envelope`
  const foreign = { code: 'client.bad_response', message, retryable: canRetry }
  return typeof error?.code === 'string' ? { ...foreign, ...error } : foreign
}

function retryAfter(header: string | null): { afterMs?: number } {
  const seconds = header ? Number(header) : Number.NaN
  return Number.isNaN(seconds)
    ? {}
    : { afterMs: Math.max(0, Math.min(seconds * 1000, maxRetryAfterMs)) }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
