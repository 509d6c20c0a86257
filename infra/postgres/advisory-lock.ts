import { createHash } from 'node:crypto'

/**
 * The 64-bit key of an advisory lock as a decimal string, from the SHA-256 of what the lock protects; the same in
 * every process and version. Two names share a key with probability 2^-64, and would then only wait for each other.
 */
export function lockKey(name: string): string {
  return createHash('sha256').update(name).digest().readBigInt64BE(0).toString()
}
