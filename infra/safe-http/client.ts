import { Agent, type Dispatcher } from 'undici'
import { type ConnectorOptions, createConnector } from './connect.ts'
import { DeliveryFailure, exchangeFailure, type FailureReason } from './failures.ts'

export interface WebhookClientOptions extends ConnectorOptions {
  /** Milliseconds from the DNS lookup to the last byte of the response. */
  timeoutMs?: number
  /** Age from which a connection is not reused; the next one resolves and checks the address again. */
  maxConnectionAgeMs?: number
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
  /** Called once connected, before the first byte of the request is sent. Returning false cancels the request. */
  canSend?: () => boolean
}

interface ReceivedResponse {
  kind: 'response'
  status: number
  retryAfter: string | undefined
  /** At most the first `maxBytes` (default 64 KiB). */
  body: Buffer
}

interface RequestFailure {
  kind: 'failure'
  reason: FailureReason
  message: string
}

export type RequestOutcome = (ReceivedResponse | RequestFailure) & { durationMs: number }

export interface WebhookClient {
  /** Sends a POST. Never rejects. */
  post(options: PostOptions): Promise<RequestOutcome>
  /** Sends a GET. Never rejects. */
  get(options: GetOptions): Promise<RequestOutcome>
  /** Closes all connections. Requests in flight fail with `reset`, which must not be blamed on their receivers. */
  close(): Promise<void>
}

// Shorter than receivers' usual keep-alive timeouts, because a request that hits a closing connection is not retried
// here.
const idleMs = 1000

const maxHeaderBytes = 16 * 1024
const maxBodyBytes = 64 * 1024

/**
 * Creates an SSRF-safe client for untrusted URLs. It connects only to addresses that `rules` allow, uses no proxy,
 * follows no redirects, verifies certificates, and limits time and bytes. It does not limit connections per host,
 * because slow requests of one endpoint would then delay another one at the same host.
 */
export function createWebhookClient(options: WebhookClientOptions): WebhookClient {
  const { timeoutMs = 15_000, maxConnectionAgeMs = 60_000 } = options
  const agent = new Agent({
    connect: createConnector(options),
    allowH2: false,
    maxHeaderSize: maxHeaderBytes,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
    clientTtl: maxConnectionAgeMs,
    // `timeoutMs` limits the entire request.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  async function send(request: Exchange): Promise<RequestOutcome> {
    const started = performance.now()
    const outcome = await exchange(agent, request).catch(toFailure)
    return { ...outcome, durationMs: Math.round(performance.now() - started) }
  }
  return {
    post: (request) => send({ timeoutMs, ...request, method: 'POST' }),
    get: (request) => send({ timeoutMs, ...request, method: 'GET' }),
    close: () => agent.destroy(),
  }
}

function toFailure(error: unknown): RequestFailure {
  const { reason, message } = exchangeFailure(error, { hasHead: false })
  return { kind: 'failure', reason, message }
}

type Exchange = GetOptions &
  Partial<Pick<PostOptions, 'body' | 'canSend'>> & { method: 'GET' | 'POST'; timeoutMs: number }

// Rejects with DeliveryFailure. undici's own timeouts would not cover the time until a connection exists.
async function exchange(
  agent: Agent,
  { url, timeoutMs, maxBytes, canSend, ...request }: Exchange,
): Promise<ReceivedResponse> {
  const { origin, pathname, search } = receiverOf(url)
  const { handler, response, fail } = createResponseHandler(maxBytes ?? maxBodyBytes, canSend)
  const expire = () => fail(new DeliveryFailure('timeout', 'The receiver did not respond in time.'))
  const timer = setTimeout(expire, timeoutMs)
  agent.dispatch({ origin, path: pathname + search, ...request }, handler)
  return response.finally(() => clearTimeout(timer))
}

function createResponseHandler(maxBytes: number, canSend: () => boolean = () => true) {
  const { promise: response, resolve, reject } = Promise.withResolvers<ReceivedResponse>()
  const chunks: Buffer[] = []
  let size = 0
  let head: Pick<ReceivedResponse, 'status' | 'retryAfter'> | undefined
  let failure: DeliveryFailure | undefined
  let controller: Dispatcher.DispatchController | undefined
  function end() {
    if (head)
      resolve({ kind: 'response', ...head, body: Buffer.concat(chunks).subarray(0, maxBytes) })
  }
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(dispatch) {
      controller = dispatch
      if (failure) dispatch.abort(failure)
      else if (!canSend()) fail(new DeliveryFailure('dropped', 'The request was not sent.'))
    },
    onResponseStart(_controller, status, headers) {
      // Ignores 1xx, which precede the response.
      if (status >= 200) head = { status, retryAfter: firstValue(headers['retry-after']) }
    },
    onResponseData(dispatch, chunk) {
      chunks.push(chunk)
      size += chunk.length
      if (size <= maxBytes) return
      end()
      dispatch.abort(new DeliveryFailure('reset', 'enough was read'))
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
  return { handler, response, fail }
}

function receiverOf(text: string): URL {
  const url = URL.parse(text)
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url
  throw new DeliveryFailure('address', 'The URL is not one that webhooks are sent to.')
}

function firstValue(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}
