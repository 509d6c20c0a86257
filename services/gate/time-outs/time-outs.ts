import type { GateSessionId } from '../../../infra/ids.ts'
import { tryLock } from '../../../infra/postgres/advisory-lock.ts'
import { type Db, type Tx, transaction } from '../../../infra/postgres/pool.ts'
import { dueGateSessions } from '../../../projections/gate/queries.ts'
import type { GateParts } from '../context.ts'
import { longClosing } from '../serving/pages.ts'
import { reloadMs } from '../signup/reject-session.ts'
import { endClosed, endCode, endDelivery, endSession } from '../signup/session-commands.ts'
import { createFailedEnds, type End, type EndKind, type FailedEnds } from './failed-ends.ts'

export type TimeOutParts = Pick<GateParts, 'pool' | 'decide' | 'clock' | 'vault' | 'logger'>

export interface LookOptions {
  /** What failed at earlier looks (default: nothing); what fails now is added. */
  failed?: FailedEnds
  /** After so many milliseconds (default 1000) a look goes on with the next kind; one of each is tried at least. */
  budgetMs?: number
}

const maxOfAKind = 100
/** First what is to be deleted. */
const kinds = ['deliveries', 'pages', 'codes', 'sessions'] as const satisfies EndKind[]
const endOf: Record<EndKind, (parts: TimeOutParts, id: GateSessionId) => Promise<boolean>> = {
  deliveries: endDelivery,
  pages: endClosed,
  codes: endCode,
  sessions: endSession,
}

/**
 * One look for what is past its time: deliveries, pages that were closed, login codes, sessions. Resolves to how many
 * ended. What cannot be ended, and may take seconds to fail, is tried again when all else was; the first failure is
 * thrown at the end. Another look at the same time does nothing; were it to, each thing would still end once, since
 * that is decided.
 */
export async function endOverdue(parts: TimeOutParts, options: LookOptions = {}): Promise<number> {
  const { failed = createFailedEnds(), budgetMs = 1000 } = options
  return transaction(parts.pool, async (tx) => {
    if (!(await tryLock(tx, 'gate-time-outs'))) return 0
    const look = createLook(tx, { parts, failed, budgetMs })
    const before = failed.all()
    for (const kind of kinds) {
      const ids = await due(tx, { kind, now: parts.clock(), except: failed.of(kind) })
      await look.tryEach(ids.map((gateSessionId) => ({ kind, gateSessionId })))
    }
    await look.retry(before)
    return look.ended()
  })
}

interface Look {
  parts: TimeOutParts
  failed: FailedEnds
  budgetMs: number
}

function createLook(tx: Tx, { parts, failed, budgetMs }: Look) {
  const failures: unknown[] = []
  let ended = 0

  /** Whether it is over, by this attempt or another. */
  async function attempt(end: End): Promise<boolean> {
    // The transaction is idle while others decide, and the server's connections may be so for 15 seconds only.
    await tx.query('select')
    try {
      if (await endOf[end.kind](parts, end.gateSessionId)) ended++
      failed.remove(end)
      return true
    } catch (error) {
      failures.push(error)
      failed.add(end)
      return false
    }
  }

  return {
    async tryEach(ends: End[]): Promise<void> {
      const endAt = performance.now() + budgetMs
      for (const end of ends) {
        await attempt(end)
        if (performance.now() >= endAt) return
      }
    },
    /** As one fails the others most probably would: they are left for the next looks. */
    async retry(ends: End[]): Promise<void> {
      const endAt = performance.now() + budgetMs
      for (const end of ends) if (!(await attempt(end)) || performance.now() >= endAt) return
    },
    ended(): number {
      if (failures.length > 0) throw failures[0]
      return ended
    },
  }
}

interface Due {
  kind: EndKind
  now: number
  except: GateSessionId[]
}

/** What is to be ended, a few of the kind, the longest overdue first. */
function due(db: Db, { kind, now, except }: Due): Promise<GateSessionId[]> {
  const some = { now, except, limit: maxOfAKind }
  return kind === 'pages' ? longClosing(db, { ...some, forMs: reloadMs }) : dueGateSessions(db, kind, some)
}
