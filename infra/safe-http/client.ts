import type { AddressRules } from './address-rules.ts'
import { createConnector } from './connector.ts'
import { type Answer, exchange, type Post } from './exchange.ts'
import { DeliveryFailure, exchangeFailure, type FailureReason } from './failure.ts'
import { createLanes, type Lanes } from './lanes.ts'
import { createHostResolver } from './resolver.ts'

export interface WebhookClientOptions {
  rules: AddressRules
  /** From the look-up of the receiver's address to the last byte of its response. */
  timeoutMs?: number
  dnsTimeoutMs?: number
  /** TCP and TLS together. */
  connectTimeoutMs?: number
  /** `address:port`; instead of those of the system. */
  dnsServers?: string[]
  /** PEM; instead of the certificate authorities that Node knows. */
  ca?: string
}

export interface PostOptions {
  url: string
  headers: Record<string, string>
  body: string
  timeoutMs?: number
  /** Of the response's body. */
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
      /** For the endpoint's owner. */
      message: string
      durationMs: number
    }

export interface WebhookClient {
  /** Never rejects. */
  post(options: PostOptions): Promise<PostOutcome>
  /** Ends all at once; posts under way fail with `reset`, which says nothing about their receivers. */
  close(): Promise<void>
}

/**
 * Posts to URLs that nobody vouches for. It connects to addresses that `rules` allow and to no other, knows no proxy,
 * follows no redirect, verifies certificates, and bounds time and bytes. Connections are kept for a few seconds.
 */
export function createWebhookClient(options: WebhookClientOptions): WebhookClient {
  const { rules, ca, timeoutMs = 15_000, dnsTimeoutMs = 5000, connectTimeoutMs = 5000 } = options
  const { dnsServers: servers } = options
  const resolve = createHostResolver({ timeoutMs: dnsTimeoutMs, ...(servers ? { servers } : {}) })
  const lanes = createLanes(createConnector({ rules, resolve, timeoutMs: connectTimeoutMs, ca }))
  const underWay = new Set<AbortController>()
  let isClosed = false
  return {
    async post(request) {
      const started = performance.now()
      const stop = new AbortController()
      underWay.add(stop)
      const timer = setTimeout(() => stop.abort(overdue()), request.timeoutMs ?? timeoutMs)
      if (isClosed) stop.abort(closed())
      const outcome = await deliver({ request, lanes, signal: stop.signal }).catch(failed)
      clearTimeout(timer)
      underWay.delete(stop)
      return { ...outcome, durationMs: Math.round(performance.now() - started) }
    },
    async close() {
      isClosed = true
      for (const stop of underWay) stop.abort(closed())
      await lanes.close()
    },
  }
}

interface Delivery {
  request: PostOptions
  lanes: Lanes
  signal: AbortSignal
}

async function deliver({ request, lanes, signal }: Delivery) {
  const url = receiverOf(request.url)
  const post = {
    path: url.pathname + url.search,
    headers: request.headers,
    body: Buffer.from(request.body),
    maxBytes: request.maxBytes ?? 64 * 1024,
  }
  const { status, retryAfter, body } = await send({ url, post, lanes, signal })
  return { kind: 'response' as const, status, retryAfter, body }
}

function receiverOf(text: string): URL {
  const url = URL.parse(text)
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url
  throw new DeliveryFailure('address', 'The URL is not one that webhooks are sent to.')
}

interface Sending {
  url: URL
  post: Post
  lanes: Lanes
  signal: AbortSignal
}

/**
 * A receiver may close a connection that was idle in the moment we use it again, which is no failure of its. The
 * request goes out once more, on a new connection: whether it was processed nobody knows, but a receiver that gets it
 * twice sees the same Idempotency-Key.
 */
async function send({ url, post, lanes, signal }: Sending): Promise<Answer> {
  const lane = lanes.take(url)
  let used = lane
  let result = await exchange(lane, post, signal)
  if ('failure' in result && result.isStale && !signal.aborted) {
    lanes.discard(lane)
    used = lanes.open(url)
    result = await exchange(used, post, signal)
  }
  if ('failure' in result) {
    lanes.discard(used)
    throw result.failure
  }
  if (result.isComplete) lanes.giveBack(used)
  else lanes.discard(used)
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
