import type { SentObservations } from '../../../schemas/observations.ts'
import type { ClientCrypto, ClientDocumentKeys, ClientRandom } from './client-crypto.ts'
import {
  CollectError,
  createTransport,
  type FetchLike,
  type RetryOptions,
  type Transport,
} from './client-transport.ts'
import {
  type BatchResponse,
  type BodyKind,
  type Bytes,
  bodyPath,
  type DocumentAddress,
  type EngineQuestion,
  type Fingerprint,
  fingerprintText,
  fromBase64Url,
  headerNames,
  ivBytes,
  type OpenRequest,
  type OpenResponse,
  type PageInfo,
  type ResultResponse,
  resultText,
  type SdkInfo,
  sessionsPath,
  utf8,
} from './protocol.ts'

export { CollectError, type FetchLike } from './client-transport.ts'
export type { CanvasChallenge, CanvasOp } from './protocol.ts'

export interface CollectClientOptions {
  /** Base URL of the server, without `/v2/collect`. */
  endpoint: string
  publishableKey: string
  fetch: FetchLike
  random?: ClientRandom
  sdk: SdkInfo
  page?: PageInfo
  resumeToken?: string
  continuity?: string
  headers?: Record<string, string>
  retry?: RetryOptions
  /** Replaces the default, noble, which runs everywhere. */
  crypto?: AsyncClientCrypto
  /** Replaces the platform's async compression, which a page has no time to await while it unloads. */
  deflate?: Deflate
  /** Encodes JSON in UTF-8. Replaces `JSON.stringify`, which a page may have overridden. */
  encode?: Encode
  /** Awaited between the computations of `open`, so that the page stays responsive. */
  pause?: () => Promise<void>
}

type MaybeAsync<F> = F extends (...args: infer Args) => infer Result
  ? (...args: Args) => Result | Promise<Result>
  : never

/** A `ClientCrypto` whose functions may return promises, as Web Crypto does. */
export type AsyncClientCrypto = { [Name in keyof ClientCrypto]: MaybeAsync<ClientCrypto[Name]> }

export type OpenedSession = Omit<
  OpenResponse,
  'serverPublicKey' | 'nonce' | 'sharedPostVersion'
> & {
  /** The client's public key for the document, which an app attests. */
  clientPublicKey: string
}

interface BatchAck {
  seq: number
  intervalMs: number
  fingerprint?: Fingerprint
  /** Further questions after the first batch. Send their answers as `engine_answers` of the next body. */
  engineQuestions: EngineQuestion[]
}

export interface HandoffResult {
  sessionId: string
  sealedToken: string
}

/**
 * A document of a collect session. Bodies are sent one at a time, in call order. If a response is lost, the same bytes
 * are sent again, at the latest before the next body, so callers must not pass observations a second time. All methods
 * reject with CollectError. If its `nextAction` is `new_session`, create a new client.
 */
export interface CollectClient {
  open(): Promise<OpenedSession>
  sendBatch(observations: SentObservations): Promise<BatchAck>
  requestResult(observations: SentObservations): Promise<HandoffResult>
}

const systemRandom: ClientRandom = (size) => globalThis.crypto.getRandomValues(new Uint8Array(size))

export function createCollectClient(options: CollectClientOptions): CollectClient {
  const { random = systemRandom, deflate = deflateRaw, encode = encodeJson, pause } = options
  const transport = createTransport(options)
  let opening:
    | Promise<{ session: OpenedSession; sender: ReturnType<typeof createBodySender> }>
    | undefined

  async function openDocument() {
    const crypto = options.crypto ?? (await import('./client-crypto.ts'))
    const keyPair = await crypto.createKeyPair(random)
    await pause?.()
    const response: OpenResponse = await transport.postJson(
      sessionsPath,
      encode(openRequest(options, keyPair.publicKey)),
    )
    const { serverPublicKey, nonce, sharedPostVersion: _, ...session } = response
    const keys = await crypto.deriveDocumentKeys(keyPair, { address: session, serverPublicKey })
    await pause?.()
    const parts = { transport, random, crypto, deflate, encode }
    const { publicKey } = keyPair
    return {
      session: { ...session, clientPublicKey: publicKey },
      sender: createBodySender({ ...parts, address: session, keys, publicKey, firstNonce: nonce }),
    }
  }

  async function sender() {
    if (!opening) throw new Error('open() comes first')
    return (await opening).sender
  }

  return {
    async open() {
      // The error may be temporary, so the next call tries again.
      opening ??= openDocument().catch((error) => {
        opening = undefined
        throw error
      })
      return (await opening).session
    },
    sendBatch: async (observations) => (await sender()).sendBatch(observations),
    requestResult: async (observations) => (await sender()).requestResult(observations),
  }
}

function openRequest(options: CollectClientOptions, clientPublicKey: string): OpenRequest {
  const { sdk, page, resumeToken, continuity } = options
  return {
    clientPublicKey,
    sdk,
    ...(page ? { page } : {}),
    ...(resumeToken ? { resumeToken } : {}),
    ...(continuity ? { continuity } : {}),
  }
}

/** Compresses with raw deflate (RFC 1951). */
export type Deflate = (bytes: Bytes) => Bytes | Promise<Bytes>

type Encode = (value: unknown) => Bytes

const encodeJson: Encode = (value) => utf8(JSON.stringify(value))

interface SenderOptions {
  transport: Transport
  random: ClientRandom
  crypto: AsyncClientCrypto
  deflate: Deflate
  encode: Encode
  address: DocumentAddress
  keys: ClientDocumentKeys
  publicKey: string
  /** Nonce of the first body. */
  firstNonce: string
}

interface SealedBody {
  kind: BodyKind
  seq: number
  bytes: Bytes
}

// Sends a document's bodies in order, one request in flight: each response has the next body's nonce. A body without a
// response is sent again before the next one, because the server may have accepted it.
function createBodySender(options: SenderOptions) {
  const { transport, random, crypto, deflate, encode, address, keys, publicKey } = options
  let nonce = options.firstNonce
  let unconfirmed: SealedBody | undefined
  let last: Promise<unknown> = Promise.resolve()

  function inTurn<T>(send: () => Promise<T>): Promise<T> {
    const result = last.then(send, send)
    last = result.catch(() => {})
    return result
  }

  async function seal(kind: BodyKind, observations: SentObservations): Promise<SealedBody> {
    const seq = sequenceOf(nonce)
    const plaintext = await deflate(encode(observations))
    const iv = random(ivBytes)
    return {
      kind,
      seq,
      bytes: await crypto.sealBody({
        key: keys.clientToServer,
        address,
        kind,
        seq,
        nonce,
        iv,
        plaintext,
      }),
    }
  }

  async function deliver<T extends { nonce: string }>(
    body: SealedBody,
  ): Promise<{ seq: number; response: T }> {
    const { kind, seq, bytes } = body
    const headers = {
      [headerNames.clientKey]: publicKey,
      ...(kind === 'batches' && { [headerNames.batchSeq]: String(seq) }),
    }
    unconfirmed = body
    const response = await transport
      .postBytes<T>(bodyPath(address, kind), bytes, headers)
      .catch((error) => {
        if (isRefusal(error)) unconfirmed = undefined
        throw error
      })
    unconfirmed = undefined
    nonce = response.nonce
    return { seq, response }
  }

  async function send<T extends { nonce: string }>(kind: BodyKind, observations: SentObservations) {
    if (unconfirmed) await deliver(unconfirmed)
    return deliver<T>(await seal(kind, observations))
  }

  async function verifyHmac(text: string, responseHmac: string) {
    if (!(await crypto.verifyResponse(keys, text, responseHmac))) throw wrongHmacError()
  }

  return {
    sendBatch: (observations: SentObservations): Promise<BatchAck> =>
      inTurn(async () => {
        const { seq, response } = await send<BatchResponse>('batches', observations)
        const { fingerprint, engineQuestions = [], next } = response
        const ack = { seq, intervalMs: next.intervalMs, engineQuestions }
        if (!fingerprint) return ack
        const covered = { ...fingerprint, stateId: fingerprint.state.id }
        const text = fingerprintText(covered, { seq, nonce: response.nonce })
        await verifyHmac(text, fingerprint.integrity.responseHmac)
        return { ...ack, fingerprint }
      }),
    requestResult: (observations: SentObservations): Promise<HandoffResult> =>
      inTurn(async () => {
        const { seq, response } = await send<ResultResponse>('results', observations)
        const { sessionId, sealedToken, nonce, integrity } = response
        await verifyHmac(resultText(response, { seq, nonce }), integrity.responseHmac)
        return { sessionId, sealedToken }
      }),
  }
}

const wrongHmacError = () =>
  new CollectError(200, {
    code: 'client.bad_response',
    message: 'responseHmac is wrong',
    retryable: false,
  })

// Returns true for a permanent error, which means that the server has not accepted the body.
function isRefusal(error: unknown): boolean {
  return (
    error instanceof CollectError &&
    error.status >= 400 &&
    error.status < 500 &&
    error.status !== 429
  )
}

// Reads the sequence number at the start of a nonce: 4 bytes, big-endian.
function sequenceOf(nonce: string): number {
  const bytes = fromBase64Url(nonce)
  return new DataView(bytes.buffer).getUint32(0)
}

export async function deflateRaw(bytes: Bytes): Promise<Bytes> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate-raw'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}
