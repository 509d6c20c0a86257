import type { Dispatcher } from 'undici'
import type { AddressRules } from './addresses.ts'
import { type Connection, type ConnectionPool, createConnectionPool, createConnector } from './connections.ts'
import {
  createHostResolver,
  DeliveryFailure,
  exchangeFailure,
  type FailureReason,
  type ResponseProgress,
} from './sockets.ts'

export interface WebhookClientOptions {
  rules: AddressRules
  /** From the look-up of the receiver's address to the last byte of its response. */
  timeoutMs?: number
  dnsTimeoutMs?: number
  connectTimeoutMs?: number
  dnsServers?: string[]
  ca?: string
}

export interface PostOptions {
  url: string
  headers: Record<string, string>
  body: string
  timeoutMs?: number
  maxBytes?: number
}

export type PostOutcome =
  | {
      kind: 'response'
      status: number
      retryAfter: string | undefined
      /** At most `maxBytes`; the rest was not read. */
      body: Buffer
      durationMs: number
    }
  | {
      kind: 'failure'
      reason: FailureReason
      message: string
      durationMs: number
    }

export interface WebhookClient {
  /** Never rejects. */
  post(options: PostOptions): Promise<PostOutcome>
  /** Posts in flight fail with `reset`, which says nothing about their receivers. */
  close(): Promise<void>
}

/**
 * Posts to URLs that nobody vouches for. It connects only to addresses that `rules` allow. It uses no proxy, follows no
 * redirect, verifies certificates, and limits time and bytes. Connections are kept for a few seconds.
 */
export function createWebhookClient(options: WebhookClientOptions): WebhookClient {
  const { rules, ca, timeoutMs = 15_000, dnsTimeoutMs = 5000, connectTimeoutMs = 5000 } = options
  const { dnsServers: servers } = options
  const resolve = createHostResolver({ timeoutMs: dnsTimeoutMs, ...(servers ? { servers } : {}) })
  const connections = createConnectionPool(
    createConnector({ rules, resolve, timeoutMs: connectTimeoutMs, ca }),
  )
  const underWay = new Set<AbortController>()
  let isClosed = false
  return {
    async post(request) {
      const started = performance.now()
      const stop = new AbortController()
      underWay.add(stop)
      const timer = setTimeout(() => stop.abort(overdue()), request.timeoutMs ?? timeoutMs)
      if (isClosed) stop.abort(closed())
      const outcome = await deliver({ request, connections, signal: stop.signal }).catch(failed)
      clearTimeout(timer)
      underWay.delete(stop)
      return { ...outcome, durationMs: Math.round(performance.now() - started) }
    },
    async close() {
      isClosed = true
      for (const stop of underWay) stop.abort(closed())
      await connections.close()
    },
  }
}

interface DeliverOptions {
  request: PostOptions
  connections: ConnectionPool
  signal: AbortSignal
}

async function deliver({ request, connections, signal }: DeliverOptions) {
  const url = receiverOf(request.url)
  const post = {
    path: url.pathname + url.search,
    headers: request.headers,
    body: Buffer.from(request.body),
    maxBytes: request.maxBytes ?? 64 * 1024,
  }
  const { status, retryAfter, body } = await send({ url, post, connections, signal })
  return { kind: 'response' as const, status, retryAfter, body }
}

function receiverOf(text: string): URL {
  const url = URL.parse(text)
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url
  throw new DeliveryFailure('address', 'The URL is not one that webhooks are sent to.')
}

interface SendOptions {
  url: URL
  post: PostRequest
  connections: ConnectionPool
  signal: AbortSignal
}

/**
 * A receiver may close an idle connection at the moment when it is used again, which is no failure. The request goes out
 * once more, on a new connection. A receiver that gets it twice sees the same Idempotency-Key.
 */
async function send({ url, post, connections, signal }: SendOptions): Promise<PostResponse> {
  const connection = connections.acquire(url)
  let used = connection
  let result = await exchange(connection, post, signal)
  if ('failure' in result && result.isStale && !signal.aborted) {
    connections.discard(connection)
    used = connections.open(url)
    result = await exchange(used, post, signal)
  }
  if ('failure' in result) {
    connections.discard(used)
    throw result.failure
  }
  if (result.isComplete) connections.release(used)
  else connections.discard(used)
  return result
}

function failed(error: unknown) {
  const { reason, message } = exchangeFailure(error, 'nothing')
  return { kind: 'failure' as const, reason, message }
}

function overdue(): DeliveryFailure {
  return new DeliveryFailure('timeout', 'The receiver did not answer in time.')
}

function closed(): DeliveryFailure {
  return new DeliveryFailure('reset', 'Sending was stopped.')
}

interface PostRequest {
  path: string
  headers: Record<string, string>
  body: Buffer
  maxBytes: number
}

interface PostResponse {
  status: number
  retryAfter: string | undefined
  body: Buffer
  /** Nothing is left unread, so the connection is ready for another exchange. */
  isComplete: boolean
}

interface Broken {
  failure: DeliveryFailure
  /** Closed before the first byte of a response, on a connection that had carried an exchange before. */
  isStale: boolean
}

/** Posts once. When `signal` fires, its reason is the failure. Never rejects. */
export function exchange(
  connection: Connection,
  post: PostRequest,
  signal: AbortSignal,
): Promise<PostResponse | Broken> {
  return new Promise((resolve) => {
    const stop = () => settle({ failure: exchangeFailure(signal.reason, 'nothing'), isStale: false })
    function settle(result: PostResponse | Broken) {
      signal.removeEventListener('abort', stop)
      resolve(result)
    }
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    const { path, headers, body, maxBytes } = post
    const handler = createHandler({ connection, maxBytes, settle })
    connection.client.dispatch({ method: 'POST', path, headers, body }, handler)
  })
}

interface HandlerOptions {
  connection: Connection
  maxBytes: number
  settle(result: PostResponse | Broken): void
}

function createHandler({ connection, maxBytes, settle }: HandlerOptions): Dispatcher.DispatchHandler {
  let carriedBefore = 0
  let progress: ResponseProgress = 'nothing'
  let head: Pick<PostResponse, 'status' | 'retryAfter'> = { status: 0, retryAfter: undefined }
  const chunks: Buffer[] = []
  let size = 0
  const end = (isComplete: boolean) =>
    settle({ ...head, body: Buffer.concat(chunks).subarray(0, maxBytes), isComplete })
  return {
    onRequestStart() {
      carriedBefore = connection.carried++
    },
    onResponseStarted() {
      if (progress === 'nothing') progress = 'begun'
    },
    onResponseStart(_controller, status, headers) {
      // 1xx come before the response.
      if (status < 200) return
      progress = 'head'
      head = { status, retryAfter: first(headers['retry-after']) }
    },
    onResponseData(controller, chunk) {
      chunks.push(chunk)
      size += chunk.length
      if (size <= maxBytes) return
      end(false)
      controller.abort(new DeliveryFailure('reset', 'enough was read'))
    },
    onResponseEnd: () => end(true),
    onResponseError(_controller, error) {
      const failure = exchangeFailure(error, progress)
      const isStale = failure.reason === 'reset' && carriedBefore > 0 && progress === 'nothing'
      settle({ failure, isStale })
    },
  }
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}
