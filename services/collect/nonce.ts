import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'

// Layout: seq u32 | issued at u48 | MAC 16, big-endian. The MAC covers the document id, so a nonce says without
// any state on the server which body of which document may come next. The time's top bit, which no time of ours
// has, says that no batch of the document was taken yet.
const seqBytes = 4
const claimBytes = seqBytes + 6
const macBytes = 16
const noBatchYetBit = 2 ** 47
export const nonceBytes = claimBytes + macBytes
/** Events carry the number as a signed 32-bit integer. */
export const maxSeq = 0x7fff_ffff

/** What a nonce says of the body that it is for. */
export interface NonceClaim {
  seq: number
  /** No batch of the document was taken before it: the first one's answer carries the fingerprint. */
  noBatchYet: boolean
}

export interface NonceScope {
  /** Of the master key that sealed the document id. */
  key: KeyObject
  documentId: string
}

export function issueNonce(
  { key, documentId }: NonceScope,
  { seq, noBatchYet, now }: NonceClaim & { now: number },
): Buffer {
  // Not from Node's pool: the newest nonce is kept with its document and would keep 8 KiB of pool alive.
  const nonce = Buffer.allocUnsafeSlow(nonceBytes)
  nonce.writeUInt32BE(seq, 0)
  nonce.writeUIntBE(noBatchYet ? now + noBatchYetBit : now, seqBytes, 6)
  mac(key, documentId, nonce).copy(nonce, claimBytes, 0, macBytes)
  return nonce
}

/** What a nonce of this document says; undefined for a nonce that we did not issue. */
export function readNonce({ key, documentId }: NonceScope, nonce: Buffer): NonceClaim | undefined {
  if (nonce.length !== nonceBytes) return undefined
  const expected = mac(key, documentId, nonce).subarray(0, macBytes)
  if (!timingSafeEqual(expected, nonce.subarray(claimBytes))) return undefined
  return { seq: nonce.readUInt32BE(0), noBatchYet: nonce.readUIntBE(seqBytes, 6) >= noBatchYetBit }
}

function mac(key: KeyObject, documentId: string, nonce: Buffer): Buffer {
  const claim = nonce.toString('latin1', 0, claimBytes)
  return createHmac('sha256', key)
    .update(documentId + claim, 'latin1')
    .digest()
}
