import type { Bytes } from '../../../infra/wire/collect/protocol.ts'

// Largest stored block (RFC 1951, section 3.2.4).
const storedBytes = 0xffff

/** Returns the bytes as a raw deflate stream of stored (uncompressed) blocks. */
export function toStoredBlocks(bytes: Bytes): Bytes {
  const blocks = Math.max(1, Math.ceil(bytes.length / storedBytes))
  const stored = new Uint8Array(blocks * 5 + bytes.length)
  const header = new DataView(stored.buffer)
  for (let block = 0, at = 0; block < blocks; block++) {
    const part = bytes.subarray(block * storedBytes, (block + 1) * storedBytes)
    header.setUint8(at, block === blocks - 1 ? 1 : 0)
    header.setUint16(at + 1, part.length, true)
    header.setUint16(at + 3, ~part.length & 0xffff, true)
    stored.set(part, at + 5)
    at += 5 + part.length
  }
  return stored
}
