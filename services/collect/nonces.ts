import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { nonceBytes } from '../../infra/wire/collect/protocol.ts'

/*
 * Stateless nonces: each holds the sequence number of a document's next body, authenticated by a MAC that covers the
 * document id.
 *
 * Layout: seq u32 | issued at u48 | MAC 16, big-endian. The top bit of the time, which no real time uses, is set until
 * a batch of the document is accepted.
 */
const seqBytes = 4
const contentBytes = seqBytes + 6
const macBytes = nonceBytes - contentBytes
const noBatchYetBit = 2 ** 47
/** Maximum sequence number: events store it as a signed 32-bit integer. */
export const maxSeq = 0x7fff_ffff

export interface NonceContents {
  seq: number
  /** True until a batch of the document is accepted. The response to the first batch carries the fingerprint. */
  noBatchYet: boolean
}

interface NonceDocument {
  nonceKey: KeyObject
  documentId: string
}

interface NonceState extends NonceDocument {
  /** Last issued nonce, cached to skip the MAC check when the client sends it back. */
  lastNonce: { nonce: Buffer; contents: NonceContents } | undefined
}

/** Creates a nonce, stores it as `state.lastNonce` and returns it as base64url. */
export function issueNonce(
  state: NonceState,
  { contents, now }: { contents: NonceContents; now: number },
): string {
  const nonce = createNonce(state, { ...contents, now })
  state.lastNonce = { nonce, contents }
  return nonce.toString('base64url')
}

/** Returns the contents of a nonce; undefined if it was not issued for the document. */
export function nonceContents(state: NonceState, nonce: Buffer): NonceContents | undefined {
  return state.lastNonce?.nonce.equals(nonce) ? state.lastNonce.contents : readNonce(state, nonce)
}

export function createNonce(
  { nonceKey, documentId }: NonceDocument,
  { seq, noBatchYet, now }: NonceContents & { now: number },
): Buffer {
  // Not from Node's buffer pool: the cached nonce would keep 8 KiB of pool in memory.
  const nonce = Buffer.allocUnsafeSlow(nonceBytes)
  nonce.writeUInt32BE(seq, 0)
  nonce.writeUIntBE(noBatchYet ? now + noBatchYetBit : now, seqBytes, 6)
  mac(nonceKey, documentId, nonce).copy(nonce, contentBytes, 0, macBytes)
  return nonce
}

export function readNonce(
  { nonceKey, documentId }: NonceDocument,
  nonce: Buffer,
): NonceContents | undefined {
  if (nonce.length !== nonceBytes) return undefined
  const expected = mac(nonceKey, documentId, nonce).subarray(0, macBytes)
  if (!timingSafeEqual(expected, nonce.subarray(contentBytes))) return undefined
  return { seq: nonce.readUInt32BE(0), noBatchYet: nonce.readUIntBE(seqBytes, 6) >= noBatchYetBit }
}

function mac(key: KeyObject, documentId: string, nonce: Buffer): Buffer {
  const contents = nonce.toString('latin1', 0, contentBytes)
  return createHmac('sha256', key)
    .update(documentId + contents, 'latin1')
    .digest()
}
