import { Agent, type Dispatcher } from 'undici'
import { type ConnectorOptions, createConnector } from './connect.ts'
import { DeliveryFailure, exchangeFailure, type FailureReason } from './failures.ts'

export interface WebhookClientOptions extends ConnectorOptions {
  /** From the look-up of the receiver's address to the last byte of its response. */
  timeoutMs?: number
  /** A connection gets no new request after this; the address of the next one is looked up and checked anew. */
  connectionMs?: number
}

interface GetOptions {
  url: string
  headers?: Record<string, string>
  timeoutMs?: number
  maxBytes?: number
}

export interface PostOptions extends GetOptions {
  headers: Record<string, string>
  body: string
  /** Called when there is a connection, before the first byte of the request. Nothing is sent where it returns false. */
  mayBegin?: () => boolean
}

interface PostResponse {
  kind: 'response'
  status: number
  retryAfter: string | undefined
  /** At most `maxBytes`; the rest was not read. */
  body: Buffer
}

interface PostFailure {
  kind: 'failure'
  reason: FailureReason
  message: string
}

export type PostOutcome = (PostResponse | PostFailure) & { durationMs: number }

export interface WebhookClient {
  /** Never rejects. */
  post(options: PostOptions): Promise<PostOutcome>
  /** Never rejects. */
  get(options: GetOptions): Promise<PostOutcome>
  /** Posts in flight fail with `reset`, which says nothing about their receivers. */
  close(): Promise<void>
}

// Shorter than receivers commonly keep idle connections open, because a request that meets the end of one is not repeated
// here.
const idleMs = 1000

const maxHeaderBytes = 16 * 1024
const maxBodyBytes = 64 * 1024

/**
 * Posts to URLs that nobody vouches for, and gets what is at them. It connects only to addresses that `rules` allow. It
 * uses no proxy, follows no redirect, verifies certificates, and limits time and bytes. The number of connections to a
 * host is not limited, because slow requests of one endpoint would delay those of another at the same host.
 */
export function createWebhookClient(options: WebhookClientOptions): WebhookClient {
  const { timeoutMs = 15_000, connectionMs = 60_000 } = options
  const agent = new Agent({
    connect: createConnector(options),
    allowH2: false,
    maxHeaderSize: maxHeaderBytes,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
    clientTtl: connectionMs,
    // The time of a post is limited as a whole.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  async function timed(request: Exchange): Promise<PostOutcome> {
    const started = performance.now()
    const outcome = await exchange(agent, request).catch(failed)
    return { ...outcome, durationMs: Math.round(performance.now() - started) }
  }
  return {
    post: (request) => timed({ timeoutMs, ...request, method: 'POST' }),
    get: (request) => timed({ timeoutMs, ...request, method: 'GET' }),
    close: () => agent.destroy(),
  }
}

function failed(error: unknown): PostFailure {
  const { reason, message } = exchangeFailure(error, { hasHead: false })
  return { kind: 'failure', reason, message }
}

type Exchange = GetOptions &
  Partial<Pick<PostOptions, 'body' | 'mayBegin'>> & { method: 'GET' | 'POST'; timeoutMs: number }

// Rejects with DeliveryFailure; when the time is over also before there is a connection, for which undici waits.
async function exchange(
  agent: Agent,
  { url, timeoutMs, maxBytes, mayBegin, ...request }: Exchange,
): Promise<PostResponse> {
  const { origin, pathname, search } = receiverOf(url)
  const { handler, whole, fail } = createResponse(maxBytes ?? maxBodyBytes, mayBegin)
  const overdue = () => fail(new DeliveryFailure('timeout', 'The receiver did not answer in time.'))
  const timer = setTimeout(overdue, timeoutMs)
  agent.dispatch({ origin, path: pathname + search, ...request }, handler)
  return whole.finally(() => clearTimeout(timer))
}

function createResponse(maxBytes: number, mayBegin: () => boolean = () => true) {
  const { promise: whole, resolve, reject } = Promise.withResolvers<PostResponse>()
  const chunks: Buffer[] = []
  let size = 0
  let head: Pick<PostResponse, 'status' | 'retryAfter'> | undefined
  let failure: DeliveryFailure | undefined
  let controller: Dispatcher.DispatchController | undefined
  function end() {
    if (head)
      resolve({ kind: 'response', ...head, body: Buffer.concat(chunks).subarray(0, maxBytes) })
  }
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(started) {
      controller = started
      if (failure) started.abort(failure)
      else if (!mayBegin()) fail(new DeliveryFailure('dropped', 'The request was not sent.'))
    },
    onResponseStart(_controller, status, headers) {
      // 1xx come before the response.
      if (status >= 200) head = { status, retryAfter: first(headers['retry-after']) }
    },
    onResponseData(receiving, chunk) {
      chunks.push(chunk)
      size += chunk.length
      if (size <= maxBytes) return
      end()
      receiving.abort(new DeliveryFailure('reset', 'enough was read'))
    },
    onResponseEnd: end,
    onResponseError: (_controller, error) =>
      reject(exchangeFailure(error, { hasHead: head !== undefined })),
  }
  function fail(reason: DeliveryFailure): void {
    failure = reason
    reject(reason)
    controller?.abort(reason)
  }
  return { handler, whole, fail }
}

function receiverOf(text: string): URL {
  const url = URL.parse(text)
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url
  throw new DeliveryFailure('address', 'The URL is not one that webhooks are sent to.')
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}
