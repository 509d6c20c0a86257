import { workOffInTurn } from '../../infra/flow/in-turn.ts'
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
  const run = (intervalMs: number, work: () => Promise<boolean>, failure: string) =>
    runPeriodically({
      intervalMs,
      work,
      onError: (err) => logger.error({ err }, `${failure}, trying again`),
    })
  const workers = [
    run(
      timeOutsMs,
      async () => (await endOverdue(options)) > 0,
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

const endOf = {
  deliveries: expireDelivery,
  pages: rejectClosed,
  codes: expireCode,
  sessions: expireSession,
} satisfies Record<string, (deps: GateDeps, id: GateSessionId) => Promise<boolean>>
const kinds = ['deliveries', 'pages', 'codes', 'sessions'] as const

/**
 * Ends what has expired, up to a hundred of each kind, and returns how many ended. What fails keeps nothing else from
 * it: the first failure is thrown at the end.
 */
export async function endOverdue(parts: GateParts): Promise<number> {
  const { pool, clock, decideAs } = parts
  const deps = { ...parts, decide: decideAs({ type: 'scheduler', id: 'gate-time-outs' }) }
  const failures: unknown[] = []
  let ended = 0
  for (const kind of kinds) {
    ended += await workOffInTurn(pool, `gate-time-outs-${kind}`, {
      findDue: (tx, limit) => dueEnds(tx, kind, { now: clock(), limit }),
      work: (id) => endOf[kind](deps, id),
    }).catch((error) => {
      failures.push(error)
      return 0
    })
  }
  if (failures.length > 0) throw failures[0]
  return ended
}

const dueEnds = (db: Db, kind: keyof typeof endOf, due: { now: number; limit: number }) =>
  kind === 'pages' ? longClosing(db, { ...due, forMs: reloadMs }) : dueGateSessions(db, kind, due)

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
