import { createHash } from 'node:crypto'
import type { Tx } from './pool.ts'

/**
 * The 64-bit key of an advisory lock as a decimal string, from the SHA-256 of what the lock protects; the same in
 * every process and version. Two names share a key with probability 2^-64, and would then only wait for each other.
 */
export function lockKey(name: string): string {
  return createHash('sha256').update(name).digest().readBigInt64BE(0).toString()
}

/**
 * Takes the lock until the end of the transaction if nobody has it; false if somebody does. So whoever dies with it
 * holds up nobody.
 */
export async function tryLock(tx: Tx, name: string): Promise<boolean> {
  const { rows } = await tx.query<{ taken: boolean }>('select pg_try_advisory_xact_lock($1) as taken', [
    lockKey(name),
  ])
  return rows[0]?.taken === true
}
