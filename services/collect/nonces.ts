import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { nonceBytes } from '../../infra/wire/collect/protocol.ts'

// Layout: seq u32 | issued at u48 | MAC 16, big-endian. The MAC covers the document id, so a nonce says without
// any state on the server which body of which document may come next. The time's top bit, which no time of ours
// has, says that no batch of the document was accepted yet.
const seqBytes = 4
const contentBytes = seqBytes + 6
const macBytes = nonceBytes - contentBytes
const noBatchYetBit = 2 ** 47
/** Events carry the number as a signed 32-bit integer. */
export const maxSeq = 0x7fff_ffff

export interface NonceContents {
  seq: number
  /** No batch of the document was accepted before it: the first one's answer carries the fingerprint. */
  noBatchYet: boolean
}

/** A document, by what its nonces are bound to. */
interface NonceOwner {
  nonceKey: KeyObject
  documentId: string
}

interface NonceState extends NonceOwner {
  /** The nonce that was handed out last. When it comes back, its MAC need not be computed once more. */
  issued: { nonce: Buffer; contents: NonceContents } | undefined
}

export function handOutNonce(
  state: NonceState,
  { contents, now }: { contents: NonceContents; now: number },
): string {
  const nonce = issueNonce(state, { ...contents, now })
  state.issued = { nonce, contents }
  return nonce.toString('base64url')
}

/** What a nonce of the document says; undefined for a nonce that we did not issue. */
export function nonceContents(state: NonceState, nonce: Buffer): NonceContents | undefined {
  return state.issued?.nonce.equals(nonce) ? state.issued.contents : readNonce(state, nonce)
}

export function issueNonce(
  { nonceKey, documentId }: NonceOwner,
  { seq, noBatchYet, now }: NonceContents & { now: number },
): Buffer {
  // Not from Node's pool: the newest nonce stays with its document, and would hold 8 KiB of pool in memory.
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
