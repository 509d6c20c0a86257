import { createHmac, randomFillSync } from 'node:crypto'
import type { Random } from './ids.ts'

const poolBytes = 16 * 1024

/**
 * Draws random bytes from the system in blocks: several times cheaper than a call for a few bytes each. No byte is
 * handed out twice, and what was handed out is erased from the block.
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
 * HMAC-SHA256(key, seed | counter u32), block after block (counter mode of NIST SP 800-108 with HMAC). The same calls
 * in the same order give the same bytes, so steps that race each other must not share one.
 */
export function counterRandom(key: Buffer, seed: Buffer): Random {
  let counter = 0
  let rest: Buffer = Buffer.alloc(0)
  const block = () => {
    const number = Buffer.alloc(4)
    number.writeUInt32BE(counter++)
    return createHmac('sha256', key).update(seed).update(number).digest()
  }
  return (size) => {
    const blocks = [rest]
    for (let have = rest.length; have < size; have += 32) blocks.push(block())
    const bytes = Buffer.concat(blocks)
    rest = bytes.subarray(size)
    return Buffer.from(bytes.subarray(0, size))
  }
}
