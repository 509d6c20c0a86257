import { randomFillSync } from 'node:crypto'
import type { Random } from './ids.ts'

const poolBytes = 16 * 1024

/**
 * Cryptographically random bytes, drawn from the system in blocks: a call for a few bytes is several times cheaper
 * than asking the system each time. No byte is handed out twice, and what was handed out is erased from the block.
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
