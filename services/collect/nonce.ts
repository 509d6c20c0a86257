import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'

// Layout: seq u32 | issued at u48 | MAC 16, big-endian. The MAC covers the document id, so a nonce says without
// any state on the server which body of which document may come next.
const seqBytes = 4
const claimBytes = seqBytes + 6
const macBytes = 16
export const nonceBytes = claimBytes + macBytes
/** Events carry the number as a signed 32-bit integer. */
export const maxSeq = 0x7fff_ffff

export interface NonceScope {
  /** Of the master key that sealed the document id. */
  key: KeyObject
  documentId: string
}

/** The nonce for the body with this sequence number. */
export function issueNonce(
  { key, documentId }: NonceScope,
  { seq, now }: { seq: number; now: number },
): Buffer {
  // Not from Node's pool: the newest nonce is kept with its document and would keep 8 KiB of pool alive.
  const nonce = Buffer.allocUnsafeSlow(nonceBytes)
  nonce.writeUInt32BE(seq, 0)
  nonce.writeUIntBE(now, seqBytes, 6)
  mac(key, documentId, nonce).copy(nonce, claimBytes, 0, macBytes)
  return nonce
}

/** The sequence number that a nonce of this document is for; undefined for a nonce that we did not issue. */
export function readNonce({ key, documentId }: NonceScope, nonce: Buffer): number | undefined {
  if (nonce.length !== nonceBytes) return undefined
  const expected = mac(key, documentId, nonce).subarray(0, macBytes)
  return timingSafeEqual(expected, nonce.subarray(claimBytes)) ? nonce.readUInt32BE(0) : undefined
}

function mac(key: KeyObject, documentId: string, nonce: Buffer): Buffer {
  const claim = nonce.toString('latin1', 0, claimBytes)
  return createHmac('sha256', key)
    .update(documentId + claim, 'latin1')
    .digest()
}
