import type pg from 'pg'
import { type Tx, transaction, tryLock } from '../postgres/pool.ts'

const maxAtOnce = 100
// The transaction is idle during the work. The server's connections may be idle for 15 seconds.
const maxMs = 3000

/**
 * Does what is due, if no other process does so now, and returns how much was done: at most 100, and for three seconds.
 * What fails does not keep the rest from being done: the first failure is thrown at the end.
 */
export function workOffInTurn<Due>(
  pool: pg.Pool,
  lock: string,
  {
    findDue,
    work,
  }: { findDue: (tx: Tx, limit: number) => Promise<Due[]>; work: (due: Due) => Promise<boolean> },
): Promise<number> {
  const endAt = performance.now() + maxMs
  return transaction(pool, async (tx) => {
    if (!(await tryLock(tx, lock))) return 0
    const failures: unknown[] = []
    let done = 0
    for (const due of await findDue(tx, maxAtOnce)) {
      if (performance.now() > endAt) break
      try {
        if (await work(due)) done++
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
    return done
  })
}
