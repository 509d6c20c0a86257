import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { nonceBytes } from '../../infra/wire/collect/protocol.ts'

/*
 * Stateless nonces: each says which body of which document comes next, authenticated by a MAC that covers the document
 * id.
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
  /** No batch of the document was accepted before. The response to the first batch carries the fingerprint. */
  noBatchYet: boolean
}

/** Document that the nonces belong to. */
interface NonceOwner {
  nonceKey: KeyObject
  documentId: string
}

interface NonceState extends NonceOwner {
  /** Last nonce that was issued; its MAC need not be computed again when it returns. */
  lastNonce: { nonce: Buffer; contents: NonceContents } | undefined
}

/** Issues a nonce, remembers it in `state` and returns it as base64url. */
export function handOutNonce(
  state: NonceState,
  { contents, now }: { contents: NonceContents; now: number },
): string {
  const nonce = issueNonce(state, { ...contents, now })
  state.lastNonce = { nonce, contents }
  return nonce.toString('base64url')
}

/** Returns the contents of a nonce; undefined if it was not issued for the document. */
export function nonceContents(state: NonceState, nonce: Buffer): NonceContents | undefined {
  return state.lastNonce?.nonce.equals(nonce) ? state.lastNonce.contents : readNonce(state, nonce)
}

export function issueNonce(
  { nonceKey, documentId }: NonceOwner,
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
  { nonceKey, documentId }: NonceOwner,
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
