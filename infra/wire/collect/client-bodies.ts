import type { SentObservations } from '../../../schemas/observations.ts'
import { type Bytes, fromBase64Url, utf8 } from './bytes.ts'
import type { BatchAck, Handoff } from './client.ts'
import { type ClientRandom, type DocumentKeys, sealBody, verifyResponse } from './client-crypto.ts'
import { CollectError, type Transport } from './client-transport.ts'
import {
  type BodyKind,
  bodyPath,
  type DocumentAddress,
  fingerprintText,
  headerNames,
  ivBytes,
  resultText,
} from './constants.ts'
import type { BatchResponse, ResultResponse } from './messages.ts'

export interface OpenDocument {
  address: DocumentAddress
  keys: DocumentKeys
  /** The client's, base64url. */
  publicKey: string
  /** For the next body. */
  nonce: string
}

/** Raw deflate (RFC 1951). */
export type Deflate = (bytes: Bytes) => Bytes | Promise<Bytes>

interface SenderOptions {
  transport: Transport
  random: ClientRandom
  deflate: Deflate
  document: OpenDocument
}

interface SealedBody {
  kind: BodyKind
  seq: number
  bytes: Bytes
}

/**
 * Sends a document's bodies in order, one request in flight: each answer carries the next body's nonce. A body
 * whose answer never came is sent again before the next one, because the server may have taken it.
 */
export function createBodySender({ transport, random, deflate, document }: SenderOptions) {
  const { address, keys, publicKey } = document
  let { nonce } = document
  let unanswered: SealedBody | undefined
  let last: Promise<unknown> = Promise.resolve()

  function inTurn<T>(send: () => Promise<T>): Promise<T> {
    const mine = last.then(send, send)
    last = mine.catch(() => {})
    return mine
  }

  async function seal(kind: BodyKind, observations: SentObservations): Promise<SealedBody> {
    const seq = sequenceOf(nonce)
    const plaintext = await deflate(utf8(JSON.stringify(observations)))
    const iv = random(ivBytes)
    return {
      kind,
      seq,
      bytes: sealBody({ key: keys.clientToServer, address, kind, seq, nonce, iv, plaintext }),
    }
  }

  async function deliver<T extends { nonce: string }>(body: SealedBody): Promise<{ seq: number; answer: T }> {
    const { kind, seq, bytes } = body
    const headers = { [headerNames.clientKey]: publicKey, ...(kind === 'batches' ? seqHeader(seq) : {}) }
    unanswered = body
    const answer = await transport.postBytes<T>(bodyPath(address, kind), bytes, headers).catch((error) => {
      if (isRefusal(error)) unanswered = undefined
      throw error
    })
    unanswered = undefined
    nonce = answer.nonce
    return { seq, answer }
  }

  async function send<T extends { nonce: string }>(kind: BodyKind, observations: SentObservations) {
    if (unanswered) await deliver(unanswered)
    return deliver<T>(await seal(kind, observations))
  }

  function check(text: string, responseHmac: string) {
    if (verifyResponse(keys, text, responseHmac)) return
    const message = 'responseHmac is wrong'
    throw new CollectError(200, { code: 'client.bad_response', message, retryable: false })
  }

  return {
    sendBatch: (observations: SentObservations): Promise<BatchAck> =>
      inTurn(async () => {
        const { seq, answer } = await send<BatchResponse>('batches', observations)
        const { fingerprint, next } = answer
        if (fingerprint) {
          const covered = { ...fingerprint, stateId: fingerprint.state.id }
          check(fingerprintText(covered, { seq, nonce: answer.nonce }), fingerprint.integrity.responseHmac)
        }
        return { seq, intervalMs: next.intervalMs, ...(fingerprint ? { fingerprint } : {}) }
      }),
    requestResult: (observations: SentObservations): Promise<Handoff> =>
      inTurn(async () => {
        const { seq, answer } = await send<ResultResponse>('results', observations)
        check(resultText(answer, { seq, nonce: answer.nonce }), answer.integrity.responseHmac)
        return { sessionId: answer.sessionId, sealedToken: answer.sealedToken }
      }),
  }
}

/** Whether the server said no for good: then it has not taken the body. */
function isRefusal(error: unknown): boolean {
  return error instanceof CollectError && error.status >= 400 && error.status < 500 && error.status !== 429
}

function seqHeader(seq: number): Record<string, string> {
  return { [headerNames.batchSeq]: String(seq) }
}

/** A nonce starts with the sequence number it is for, 4 bytes big-endian. */
function sequenceOf(nonce: string): number {
  const bytes = fromBase64Url(nonce)
  return new DataView(bytes.buffer).getUint32(0)
}

/** By the Compression Streams API. */
export async function deflateRaw(bytes: Bytes): Promise<Bytes> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate-raw'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}
