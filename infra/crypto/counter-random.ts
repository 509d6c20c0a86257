import { createHmac } from 'node:crypto'
import type { Random } from '../ids.ts'

/**
 * Bytes that only the key and the seed together tell: HMAC-SHA256(key, seed | counter u32), block after block (the
 * counter mode of NIST SP 800-108 with HMAC). The same calls in the same order give the same bytes, so whoever repeats
 * something with it must not draw from steps that race each other.
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
