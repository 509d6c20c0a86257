import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { GateSessionId } from '../../infra/ids.ts'
import { databaseNow } from '../../infra/postgres/lease.ts'
import { type Db, type Tx, transaction, tryLock } from '../../infra/postgres/pool.ts'
import { dueGateSessions } from '../../projections/gate/queries.ts'
import type { GateDeps, GateParts } from './context.ts'
import { expireCode, expireDelivery, expireSession, rejectClosed } from './signup/commands.ts'
import { reloadMs } from './signup/decide.ts'
import { longClosing } from './store.ts'

/** Ends what has expired and deletes what is left of it. Several processes may run it; one works at a time. */
export function runTimeOuts(options: GateParts & { timeOutsMs?: number; purgeMs?: number }) {
  const { logger, timeOutsMs = 1000, purgeMs = 10_000 } = options
  const failed = createFailedEnds()
  const run = (intervalMs: number, work: () => Promise<boolean>, failure: string) =>
    runPeriodically({
      intervalMs,
      work,
      onError: (err) => logger.error({ err }, `${failure}, trying again`),
    })
  const workers = [
    run(
      timeOutsMs,
      async () => (await endOverdue(options, { failed })) > 0,
      'what is past its time did not end',
    ),
    run(
      purgeMs,
      async () => (await purgeGate(options)) > 0,
      'what Gate needs no more was not deleted',
    ),
  ]
  return {
    async stop() {
      await Promise.all(workers.map((worker) => worker.stop()))
    },
  }
}

const maxOfAKind = 100
const endOf = {
  deliveries: expireDelivery,
  pages: rejectClosed,
  codes: expireCode,
  sessions: expireSession,
} satisfies Record<string, (deps: GateDeps, id: GateSessionId) => Promise<boolean>>
type EndKind = keyof typeof endOf
const kinds = ['deliveries', 'pages', 'codes', 'sessions'] as const satisfies EndKind[]

export interface End {
  kind: EndKind
  gateSessionId: GateSessionId
}

/**
 * Ends what has expired, a hundred of each kind. Resolves to how many ended. After `budgetMs` the next kind is due, but
 * at least one of each is tried. What fails is tried again after all else, and the first failure is thrown at the end.
 */
export async function endOverdue(
  parts: GateParts,
  { failed = createFailedEnds(), budgetMs = 1000 }: { failed?: FailedEnds; budgetMs?: number } = {},
): Promise<number> {
  const errors: unknown[] = []
  let ended = 0
  await transaction(parts.pool, async (tx) => {
    if (!(await tryLock(tx, 'gate-time-outs'))) return
    const deps = { ...parts, decide: parts.decideAs({ type: 'scheduler', id: 'gate-time-outs' }) }
    const attempt = async (end: End): Promise<boolean> => {
      // The transaction is idle while others decide, and the server's connections may be so for 15 seconds only.
      await tx.query('select')
      try {
        if (await endOf[end.kind](deps, end.gateSessionId)) ended++
        failed.remove(end)
        return true
      } catch (error) {
        errors.push(error)
        failed.add(end)
        return false
      }
    }
    const before = failed.all()
    for (const kind of kinds) {
      const ids = await dueEnds(tx, kind, {
        now: parts.clock(),
        except: failed.of(kind),
        limit: maxOfAKind,
      })
      const ends = ids.map((gateSessionId) => ({ kind, gateSessionId }))
      await inTime(ends, budgetMs, async (end) => void (await attempt(end)))
    }
    // The first failure ends this, because the others would most probably fail, too.
    await inTime(before, budgetMs, attempt)
  })
  if (errors.length > 0) throw errors[0]
  return ended
}

async function inTime(
  ends: End[],
  budgetMs: number,
  attempt: (end: End) => Promise<boolean | undefined>,
): Promise<void> {
  const endAt = performance.now() + budgetMs
  for (const end of ends) if ((await attempt(end)) === false || performance.now() >= endAt) return
}

function dueEnds(
  db: Db,
  kind: EndKind,
  due: { now: number; except: GateSessionId[]; limit: number },
) {
  return kind === 'pages'
    ? longClosing(db, { ...due, forMs: reloadMs })
    : dueGateSessions(db, kind, due)
}

type FailedEnds = ReturnType<typeof createFailedEnds>

/**
 * What failed at the last attempt, so that it does not block the rest. The oldest attempt is first. Beyond `max` the
 * oldest are forgotten, and tried again as new ones.
 */
export function createFailedEnds({ max = 10_000 }: { max?: number } = {}) {
  const ends = new Map<string, End>()
  const nameOf = ({ kind, gateSessionId }: End) => `${kind} ${gateSessionId}`
  return {
    of: (kind: EndKind) =>
      [...ends.values()].filter((end) => end.kind === kind).map((end) => end.gateSessionId),
    all: () => [...ends.values()],
    add(end: End) {
      // A map is in the order of insertion.
      ends.delete(nameOf(end))
      ends.set(nameOf(end), end)
      for (const oldest of ends.keys()) if (ends.size > max) ends.delete(oldest)
    },
    remove: (end: End) => void ends.delete(nameOf(end)),
  }
}

const maxRows = 1000
const hourMs = 60 * 60 * 1000
// Longer than a page can request the outcome of its approval.
const pageMs = hourMs
// Longer than a signup and its delivery live.
const keyMs = 36 * hourMs

/** Deletes what is of no use any more, at most 1,000 rows of a kind. Resolves to the number of rows. */
export async function purgeGate({ pool, clock }: GateParts): Promise<number> {
  const tables = Object.entries(useless(clock()))
  return transaction(pool, async (tx) => {
    if (!(await tryLock(tx, 'gate-purge'))) return 0
    let rows = 0
    for (const [table, where] of tables) rows += await removeRows(tx, table, where)
    return rows
  })
}

/** By table, which rows `t` are of no use. `now` is the time of this process; leases and limits end by the database's clock. */
const useless = (now: number) => ({
  // Keys whose process died before it deleted them, and keys that nothing was sealed under.
  gate_vault: `
    exists (select from read.gate_sessions s where s.gate_session_id = t.gate_session_id
      and (s.status in ('rejected', 'expired') or s.delivery in ('acknowledged', 'expired')))
    or t.created_at < ${now - keyMs} and not exists (select from read.gate_sessions s
      where s.gate_session_id = t.gate_session_id
        and (s.delivery = 'waiting' or s.status = 'pending' and s.approval_started_at is not null))`,
  gate_pages: `
    t.issued_at < ${now - pageMs} and not exists (select from read.gate_sessions s
      where s.gate_session_id = t.gate_session_id and s.status = 'pending')`,
  gate_approve_tokens: `t.issued_at < ${now - pageMs}`,
  // Rows of processes that died, a minute after their time.
  gate_leases: `t.expires_at < ${databaseNow} - 60000`,
  gate_limits: `t.expire < ${databaseNow}`,
})

async function removeRows(tx: Tx, table: string, where: string): Promise<number> {
  // Rows that a request is about to write are left for the next time rather than waited for.
  const { rowCount } = await tx.query(
    `delete from tidegate.${table} where ctid = any(array(
       select t.ctid from tidegate.${table} t where ${where} limit ${maxRows} for update skip locked))`,
  )
  return rowCount ?? 0
}
