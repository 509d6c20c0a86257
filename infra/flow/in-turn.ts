import type pg from 'pg'
import { type Tx, transaction, tryLock } from '../postgres/pool.ts'

const maxPerRun = 100
// The transaction is idle during the work, and the server ends transactions that are idle for 15 seconds.
const maxMs = 3000

/**
 * Processes due items under an advisory lock and returns how many were done; 0 while another process holds the lock. A
 * run ends after 100 items or three seconds. A failed item doesn't stop the others: the first failure is thrown at the
 * end.
 */
export function processDueItems<Due>(
  pool: pg.Pool,
  lock: string,
  {
    findDue,
    work,
  }: { findDue: (tx: Tx, limit: number) => Promise<Due[]>; work: (due: Due) => Promise<boolean> },
): Promise<number> {
  const deadline = performance.now() + maxMs
  return transaction(pool, async (tx) => {
    if (!(await tryLock(tx, lock))) return 0
    const failures: unknown[] = []
    let done = 0
    for (const due of await findDue(tx, maxPerRun)) {
      if (performance.now() > deadline) break
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
