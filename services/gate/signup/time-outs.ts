import { tryLock } from '../../../infra/postgres/advisory-lock.ts'
import { type Db, transaction } from '../../../infra/postgres/pool.ts'
import { dueGateSessions } from '../../../projections/gate/session-queries.ts'
import type { GateParts } from '../context.ts'
import { longClosing } from '../pages.ts'
import { reloadMs } from './reject-session.ts'
import { endClosed, endCode, endDelivery, endSession } from './session-commands.ts'

export type TimeOutParts = Pick<GateParts, 'pool' | 'decide' | 'clock' | 'vault' | 'logger'>

const maxOfAKind = 100
/** The transaction of a look is idle meanwhile; the server's connections may be so for 15 seconds. */
const maxLookMs = 3000

/**
 * One look for what is past its time: pages that were closed, deliveries, login codes, sessions. Resolves to how many
 * ended. What cannot be ended now keeps nothing else from it; the first failure is thrown at the end. Another look at
 * the same time does nothing; were it to, each thing would still end once, since that is decided.
 */
export async function endOverdue(parts: TimeOutParts): Promise<number> {
  const endAt = performance.now() + maxLookMs
  return transaction(parts.pool, async (tx) => {
    if (!(await tryLock(tx, 'gate-time-outs'))) return 0
    const failures: unknown[] = []
    let ended = 0
    for (const end of await overdue(tx, parts)) {
      if (performance.now() > endAt) break
      const isEnded = await end().catch((error) => void failures.push(error))
      if (isEnded) ended++
    }
    if (failures.length > 0) throw failures[0]
    return ended
  })
}

/** What is to be done, a few of each kind. */
async function overdue(db: Db, parts: TimeOutParts): Promise<(() => Promise<boolean>)[]> {
  const due = { now: parts.clock(), limit: maxOfAKind }
  const [pages, deliveries, codes, sessions] = [
    await longClosing(db, { ...due, forMs: reloadMs, except: [] }),
    await dueGateSessions(db, 'deliveries', due),
    await dueGateSessions(db, 'codes', due),
    await dueGateSessions(db, 'sessions', due),
  ]
  return [
    ...pages.map((id) => () => endClosed(parts, id)),
    ...deliveries.map((id) => () => endDelivery(parts, id)),
    ...codes.map((id) => () => endCode(parts, id)),
    ...sessions.map((id) => () => endSession(parts, id)),
  ]
}
