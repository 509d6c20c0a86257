import type pg from 'pg'
import { type Tx, transaction, tryLock } from '../postgres/pool.ts'

const maxPerRun = 100
// Short, because the transaction is idle during the work, and the server aborts it after 15 idle seconds.
const maxMs = 3000

/**
 * Processes due items under an advisory lock, at most 100 or for three seconds. Returns the number of items for which
 * `work` returned true; 0 while another process holds the lock. A failed item doesn't stop the others: the first
 * failure is thrown at the end.
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
