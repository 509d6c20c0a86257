import { processDueItems } from '../../infra/flow/due-items.ts'
import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { GateSessionId } from '../../infra/ids.ts'
import { databaseNow } from '../../infra/postgres/lease.ts'
import { type Db, type Tx, transaction, tryLock } from '../../infra/postgres/pool.ts'
import { findDueGateSessions } from '../../projections/gate/queries.ts'
import type { GateDeps, GateParts } from './context.ts'
import { expireCode, expireDelivery, expireSession, rejectIfPageClosed } from './signup/commands.ts'
import { reloadMs } from './signup/decide.ts'
import { findSessionsWithClosedPage } from './store.ts'

/**
 * Starts two workers: one expires overdue sessions, codes and deliveries, the other purges rows that are no longer
 * needed. Any number of processes can run them; a lock lets one work at a time.
 */
export function runGateExpiry(options: GateParts & { sweepMs?: number; purgeMs?: number }) {
  const { logger, sweepMs = 1000, purgeMs = 10_000 } = options
  const run = (intervalMs: number, work: () => Promise<boolean>, failure: string) =>
    runPeriodically({
      intervalMs,
      work,
      onError: (err) => logger.error({ err }, `${failure}; retrying`),
    })
  const workers = [
    run(
      sweepMs,
      async () => (await expireOverdue(options)) > 0,
      'failed to expire overdue Gate sessions',
    ),
    run(purgeMs, async () => (await purgeGate(options)) > 0, 'failed to purge stale Gate data'),
  ]
  return {
    async stop() {
      await Promise.all(workers.map((worker) => worker.stop()))
    },
  }
}

const expireByKind = {
  deliveries: expireDelivery,
  pages: rejectIfPageClosed,
  codes: expireCode,
  sessions: expireSession,
} satisfies Record<string, (deps: GateDeps, id: GateSessionId) => Promise<boolean>>
const kinds = ['deliveries', 'pages', 'codes', 'sessions'] as const

/**
 * Expires up to 100 overdue items of each kind and returns their number. A failure of one kind does not stop the
 * others; the first is thrown at the end.
 */
export async function expireOverdue(parts: GateParts): Promise<number> {
  const { pool, clock, decideAs } = parts
  const deps = { ...parts, decide: decideAs({ type: 'scheduler', id: 'gate-time-outs' }) }
  const failures: unknown[] = []
  let count = 0
  for (const kind of kinds) {
    count += await processDueItems(pool, `gate-time-outs-${kind}`, {
      findDue: (tx, limit) => findOverdue(tx, kind, { now: clock(), limit }),
      work: (id) => expireByKind[kind](deps, id),
    }).catch((error) => {
      failures.push(error)
      return 0
    })
  }
  if (failures.length > 0) throw failures[0]
  return count
}

const findOverdue = (db: Db, kind: (typeof kinds)[number], due: { now: number; limit: number }) =>
  kind === 'pages'
    ? findSessionsWithClosedPage(db, { ...due, minClosedMs: reloadMs })
    : findDueGateSessions(db, kind, due)

const maxRows = 1000
const hourMs = 60 * 60 * 1000
// Exceeds the time for which a page requests the outcome of its approval.
const pageRetentionMs = hourMs
// Exceeds the lifetime of a signup (15 minutes) and its delivery (24 hours).
const keyRetentionMs = 36 * hourMs

/** Deletes rows that are no longer needed, at most 1,000 per table, and returns their number. */
export async function purgeGate({ pool, clock }: GateParts): Promise<number> {
  const tables = Object.entries(purgeConditions(clock()))
  return transaction(pool, async (tx) => {
    if (!(await tryLock(tx, 'gate-purge'))) return 0
    let rows = 0
    for (const [table, where] of tables) rows += await deleteRows(tx, table, where)
    return rows
  })
}

/** Returns SQL conditions by table for the rows `t` to delete. Leases and limits expire by the database's clock. */
const purgeConditions = (now: number) => ({
  // Left behind by a process that died before deleting them, or never used.
  gate_vault: `
    exists (select from read.gate_sessions s where s.gate_session_id = t.gate_session_id
      and (s.status in ('rejected', 'expired') or s.delivery in ('acknowledged', 'expired')))
    or t.created_at < ${now - keyRetentionMs} and not exists (select from read.gate_sessions s
      where s.gate_session_id = t.gate_session_id
        and (s.delivery = 'waiting' or s.status = 'pending' and s.approval_started_at is not null))`,
  gate_pages: `
    t.issued_at < ${now - pageRetentionMs} and not exists (select from read.gate_sessions s
      where s.gate_session_id = t.gate_session_id and s.status = 'pending')`,
  gate_approve_tokens: `t.issued_at < ${now - pageRetentionMs}`,
  // Left behind by processes that died; kept for a minute after they expired.
  gate_leases: `t.expires_at < ${databaseNow} - 60000`,
  gate_limits: `t.expire < ${databaseNow}`,
})

async function deleteRows(tx: Tx, table: string, where: string): Promise<number> {
  // Skips rows that a request is writing; the next purge deletes them.
  const { rowCount } = await tx.query(
    `delete from tidegate.${table} where ctid = any(array(
       select t.ctid from tidegate.${table} t where ${where} limit ${maxRows} for update skip locked))`,
  )
  return rowCount ?? 0
}
