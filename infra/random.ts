import { createHmac, randomFillSync } from 'node:crypto'
import type { Random } from './ids.ts'

const poolBytes = 16 * 1024

/**
 * Creates a source of cryptographically random bytes. It reads them from the system in blocks, which is several times
 * cheaper than a call for a few bytes. No byte is returned twice, and returned bytes are erased from the block.
 */
export function createRandom(): Random {
  const pool = Buffer.allocUnsafeSlow(poolBytes)
  let used = poolBytes
  return (size) => {
    if (size > poolBytes / 4) return randomFillSync(Buffer.allocUnsafeSlow(size))
    if (used + size > poolBytes) {
      randomFillSync(pool)
      used = 0
    }
    const bytes = Buffer.from(pool.subarray(used, used + size))
    pool.fill(0, used, used + size)
    used += size
    return bytes
  }
}

/**
 * Creates a deterministic source: blocks of HMAC-SHA256(key, seed | counter u32) (counter mode of NIST SP 800-108). The
 * same calls in the same order return the same bytes, so concurrent steps must not share a source.
 */
export function createDeterministicRandom(key: Buffer, seed: Buffer): Random {
  let counter = 0
  let unused: Buffer = Buffer.alloc(0)
  const nextBlock = () => {
    const number = Buffer.alloc(4)
    number.writeUInt32BE(counter++)
    return createHmac('sha256', key).update(seed).update(number).digest()
  }
  return (size) => {
    const blocks = [unused]
    for (let length = unused.length; length < size; length += 32) blocks.push(nextBlock())
    const bytes = Buffer.concat(blocks)
    unused = bytes.subarray(size)
    return Buffer.from(bytes.subarray(0, size))
  }
}
