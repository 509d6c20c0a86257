import type { SentObservations } from '../../schemas/observations.ts'
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

/** Sends a document's bodies in order, one request in flight: each answer carries the next body's nonce. */
export function createBodySender({ transport, random, deflate, document }: SenderOptions) {
  let { nonce } = document
  let last: Promise<unknown> = Promise.resolve()

  function inTurn<T>(send: () => Promise<T>): Promise<T> {
    const mine = last.then(send, send)
    last = mine.catch(() => {})
    return mine
  }

  async function post<T extends { nonce: string }>(kind: BodyKind, observations: SentObservations) {
    const { address, keys, publicKey } = document
    const seq = sequenceOf(nonce)
    const plaintext = await deflate(utf8(JSON.stringify(observations)))
    const iv = random(ivBytes)
    const body = sealBody({ key: keys.clientToServer, address, kind, seq, nonce, iv, plaintext })
    const headers = { [headerNames.clientKey]: publicKey, ...(kind === 'batches' ? seqHeader(seq) : {}) }
    const answer = await transport.postBytes<T>(bodyPath(address, kind), body, headers)
    return { seq, answer }
  }

  function check(text: string, responseHmac: string) {
    if (verifyResponse(document.keys, text, responseHmac)) return
    throw new CollectError(200, {
      code: 'client.bad_response',
      message: 'responseHmac is wrong',
      retryable: false,
    })
  }

  return {
    sendBatch: (observations: SentObservations): Promise<BatchAck> =>
      inTurn(async () => {
        const { seq, answer } = await post<BatchResponse>('batches', observations)
        const { fingerprint, next } = answer
        if (fingerprint) {
          const covered = { ...fingerprint, stateId: fingerprint.state.id }
          check(fingerprintText(covered, { seq, nonce: answer.nonce }), fingerprint.integrity.responseHmac)
        }
        nonce = answer.nonce
        return { seq, intervalMs: next.intervalMs, ...(fingerprint ? { fingerprint } : {}) }
      }),
    requestResult: (observations: SentObservations): Promise<Handoff> =>
      inTurn(async () => {
        const { seq, answer } = await post<ResultResponse>('results', observations)
        check(resultText(answer, { seq, nonce: answer.nonce }), answer.integrity.responseHmac)
        nonce = answer.nonce
        return { sessionId: answer.sessionId, sealedToken: answer.sealedToken }
      }),
  }
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
