import type { Decide } from '../../infra/event-store/decide.ts'
import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { GateSessionId } from '../../infra/ids.ts'
import { databaseNow } from '../../infra/postgres/lease.ts'
import { type Db, type Tx, transaction, tryLock } from '../../infra/postgres/pool.ts'
import { dueGateSessions } from '../../projections/gate/queries.ts'
import type { GateParts } from './context.ts'
import { expireCode, expireDelivery, expireSession, rejectClosed } from './signup/commands.ts'
import { reloadMs } from './signup/decide.ts'
import { longClosing } from './store.ts'

interface TimeOutOptions extends TimeOutParts, PurgeParts {
  timeOutsMs?: number
  purgeMs?: number
}

// Several times in the hour within which the bytes of an acknowledged key are gone, should it fail now and then.
const shredMs = 10 * 60 * 1000

/** Ends what has expired and deletes what is left of it. Several processes may run it; one works at a time. */
export function runTimeOuts(options: TimeOutOptions): { stop(): Promise<void> } {
  const { logger, vault, timeOutsMs = 1000, purgeMs = 10_000 } = options
  const failed = createFailedEnds()
  const workers = [
    runPeriodically({
      intervalMs: timeOutsMs,
      look: async () => (await endOverdue(options, { failed })) > 0,
      onError: (err) => logger.error({ err }, 'what is past its time did not end; the next look tries again'),
    }),
    runPeriodically({
      intervalMs: purgeMs,
      look: async () => (await purgeGate(options)) > 0,
      onError: (err) =>
        logger.error({ err }, 'what Gate needs no more was not deleted; the next look tries again'),
    }),
    runPeriodically({
      intervalMs: shredMs,
      look: () => vault.shred().then(() => false),
      onError: (err) =>
        logger.error({ err }, 'keys of ended deliveries are still on the disk; the next look tries again'),
    }),
  ]
  return {
    async stop() {
      await Promise.all(workers.map((worker) => worker.stop()))
    },
  }
}

type TimeOutParts = Pick<GateParts, 'pool' | 'decideAs' | 'clock' | 'vault' | 'logger'>
type EndParts = TimeOutParts & { decide: Decide }

interface EndOverdueOptions {
  failed?: FailedEnds
  // After so many milliseconds (default 1000) the next kind is due. At least one of each is tried.
  budgetMs?: number
}

const maxOfAKind = 100
const kinds = ['deliveries', 'pages', 'codes', 'sessions'] as const satisfies EndKind[]
const endOf: Record<EndKind, (parts: EndParts, id: GateSessionId) => Promise<boolean>> = {
  deliveries: expireDelivery,
  pages: rejectClosed,
  codes: expireCode,
  sessions: expireSession,
}

/**
 * Ends what has expired, a hundred of each kind. Resolves to how many ended. What fails is tried again after all
 * else, and the first failure is thrown at the end.
 */
export async function endOverdue(parts: TimeOutParts, options: EndOverdueOptions = {}): Promise<number> {
  const { failed = createFailedEnds(), budgetMs = 1000 } = options
  return transaction(parts.pool, async (tx) => {
    if (!(await tryLock(tx, 'gate-time-outs'))) return 0
    const decide = parts.decideAs({ type: 'scheduler', id: 'gate-time-outs' })
    const look = createLook(tx, { parts: { ...parts, decide }, failed, budgetMs })
    const before = failed.all()
    for (const kind of kinds) {
      const ids = await dueEnds(tx, { kind, now: parts.clock(), except: failed.of(kind) })
      await look.tryEach(ids.map((gateSessionId) => ({ kind, gateSessionId })))
    }
    await look.retry(before)
    return look.ended()
  })
}

interface Look {
  parts: EndParts
  failed: FailedEnds
  budgetMs: number
}

function createLook(tx: Tx, { parts, failed, budgetMs }: Look) {
  const failures: unknown[] = []
  let ended = 0

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
    // Ends at the first failure: the others would most probably fail, too.
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

function dueEnds(db: Db, { kind, now, except }: Due): Promise<GateSessionId[]> {
  const some = { now, except, limit: maxOfAKind }
  return kind === 'pages' ? longClosing(db, { ...some, forMs: reloadMs }) : dueGateSessions(db, kind, some)
}

type EndKind = 'deliveries' | 'pages' | 'codes' | 'sessions'

export interface End {
  kind: EndKind
  gateSessionId: GateSessionId
}

// What failed at the last attempt, so that it does not block the rest. Oldest attempt first.
interface FailedEnds {
  of(kind: EndKind): GateSessionId[]
  all(): End[]
  add(end: End): void
  remove(end: End): void
}

/** Beyond `max` the oldest are forgotten, and tried again as new ones. */
export function createFailedEnds({ max = 10_000 }: { max?: number } = {}): FailedEnds {
  const ends = new Map<string, End>()
  const nameOf = ({ kind, gateSessionId }: End) => `${kind} ${gateSessionId}`
  return {
    of: (kind) => [...ends.values()].filter((end) => end.kind === kind).map((end) => end.gateSessionId),
    all: () => [...ends.values()],
    add(end) {
      // A map is in the order of insertion.
      ends.delete(nameOf(end))
      ends.set(nameOf(end), end)
      for (const oldest of ends.keys()) if (ends.size > max) ends.delete(oldest)
    },
    remove: (end) => void ends.delete(nameOf(end)),
  }
}

type PurgeParts = Pick<GateParts, 'pool' | 'clock'>

const maxRows = 1000
const hourMs = 60 * 60 * 1000
// Longer than a page can ask for the outcome of its approval.
const pageMs = hourMs
// Longer than a signup and its delivery live.
const keyMs = 36 * hourMs
// More than the clocks of two processes differ by.
const clockSkewMs = 60_000

/** Deletes what is of no use any more, at most 1,000 rows of a kind. Resolves to the number of rows. */
export async function purgeGate({ pool, clock }: PurgeParts): Promise<number> {
  const now = clock()
  return transaction(pool, async (tx) => {
    if (!(await tryLock(tx, 'gate-purge'))) return 0
    let rows = 0
    for (const removal of removals) rows += await removeRows(tx, removal, now)
    return rows
  })
}

interface Removal {
  from: 'gate_vault' | 'gate_pages' | 'gate_approve_tokens' | 'gate_leases' | 'gate_limits'
  where: string
  // `$1` of the condition, from the time of this process.
  value: (now: number) => number
}

const removals: Removal[] = [
  // Keys whose delivery ended in a crash, and keys that nothing was sealed under.
  {
    from: 'gate_vault',
    where: `exists (select from read.gate_sessions s where s.gate_session_id = t.gate_session_id
        and (s.status in ('rejected', 'expired') or s.delivery in ('acknowledged', 'expired')))
      or t.created_at < $1 and not exists (select from read.gate_sessions s
        where s.gate_session_id = t.gate_session_id
          and (s.delivery = 'waiting' or s.status = 'pending' and s.approval_started_at is not null))`,
    value: (now) => now - keyMs,
  },
  {
    from: 'gate_pages',
    where: `t.issued_at < $1 and not exists (select from read.gate_sessions s
      where s.gate_session_id = t.gate_session_id and s.status = 'pending')`,
    value: (now) => now - pageMs,
  },
  { from: 'gate_approve_tokens', where: 't.issued_at < $1', value: (now) => now - pageMs },
  // Rows of processes that died. By the database's clock.
  {
    from: 'gate_leases',
    where: `t.expires_at < ${databaseNow} - $1`,
    value: () => clockSkewMs,
  },
  // The limiter counts by the clock of this process.
  { from: 'gate_limits', where: 't.expire < $1', value: () => Date.now() },
]

async function removeRows(tx: Tx, { from, where, value }: Removal, now: number): Promise<number> {
  // Rows that a request is about to write are left for the next time rather than waited for.
  const { rowCount } = await tx.query(
    `delete from tidegate.${from} where ctid = any(array(
       select t.ctid from tidegate.${from} t where ${where} limit ${maxRows} for update skip locked))`,
    [value(now)],
  )
  return rowCount ?? 0
}
