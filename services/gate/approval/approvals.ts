// Worker that gets the accounts of approved signups from their services.
//   - A lease lets one process at a time work on an approval. If it expires early, the outcome is still decided once.
//   - The process that received the approval starts at once. Polling resumes the approvals of processes that died.

import { setTimeout as delay } from 'node:timers/promises'
import { createConcurrencyLimit } from '../../../infra/flow/limit.ts'
import { runPeriodically } from '../../../infra/flow/periodic.ts'
import { createRowWaiter } from '../../../infra/flow/row-waiter.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import { databaseNow } from '../../../infra/postgres/lease.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { withTimeout } from '../../../infra/timing.ts'
import { findGateSession, findUnleasedApprovals } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { Approvals, GateParts } from '../context.ts'
import type { ApprovalDeps } from './account-request.ts'
import { concludeApproval } from './conclude.ts'

export interface ApprovalsOptions extends GateParts {
  sleep?: ApprovalDeps['sleep']
  pollIntervalMs?: number
  /**
   * Limits on concurrent approvals found by polling: in total (default 64) and per organization (default 16), so that a
   * slow service delays only its own organization.
   */
  concurrency?: { max: number; maxPerName: number }
}

const sleepUntilAborted: ApprovalDeps['sleep'] = async (ms, signal) =>
  delay(Math.max(0, ms), undefined, { signal })
// Grace period for responses in flight at shutdown.
const stopWithinMs = 1500

export function startApprovals(options: ApprovalsOptions): Approvals {
  const {
    pool,
    random,
    leaseMs,
    logger,
    sleep = sleepUntilAborted,
    pollIntervalMs = 2000,
  } = options
  const { concurrency = { max: 64, maxPerName: 16 } } = options
  const leases = createApprovalLeases({ pool, leaseMs, owner: random(12).toString('hex') })
  const outcomes = createOutcomeWaiter(options)
  const limit = createConcurrencyLimit(concurrency)
  const running = new Map<GateSessionId, Promise<void>>()
  const stopping = new AbortController()

  async function start(gateSessionId: GateSessionId): Promise<void> {
    const conclude = (signal: AbortSignal) =>
      concludeApproval({ ...options, sleep }, { gateSessionId, signal })
    const done = withLease({ leases, leaseMs, stopping: stopping.signal }, gateSessionId, conclude)
      .catch((err) =>
        logger.warn({ err, gate_session_id: gateSessionId }, 'signup approval failed; retrying'),
      )
      .finally(() => running.delete(gateSessionId))
    running.set(gateSessionId, done)
    await done
  }

  const isIdle = (id: GateSessionId) => !stopping.signal.aborted && !running.has(id)

  function startIfWithinLimit({
    id,
    organization_id,
  }: Pick<GateSessionRow, 'id' | 'organization_id'>): void {
    const releaseSlot = isIdle(id) ? limit.tryEnter([organization_id ?? 'this server']) : undefined
    if (releaseSlot) void start(id).finally(releaseSlot)
  }

  const polling = runPeriodically({
    intervalMs: pollIntervalMs,
    async work() {
      const { max, maxPerName } = concurrency
      // Twice the limit, because some approvals belong to organizations that have reached their own limit.
      const sessions = await findUnleasedApprovals(pool, {
        maxPerOrganization: maxPerName,
        limit: 2 * max,
      })
      for (const session of sessions) startIfWithinLimit(session)
    },
    onError: (err) => logger.warn({ err }, 'failed to read started approvals; retrying'),
  })

  return {
    startIfIdle(gateSessionId) {
      if (isIdle(gateSessionId)) void start(gateSessionId)
    },
    waitForOutcome: outcomes.waitFor,
    async stop() {
      stopping.abort()
      await polling.stop()
      await withTimeout(Promise.all(running.values()), stopWithinMs).catch(() => {})
      await leases.releaseAll().catch(() => {})
      outcomes.close()
    },
  }
}

/**
 * Runs `work` if this process can take the approval's lease. Aborts the signal when the lease is lost or the process
 * stops, and ignores errors after that.
 */
async function withLease(
  {
    leases,
    leaseMs,
    stopping,
  }: {
    leases: ReturnType<typeof createApprovalLeases>
    leaseMs: number
    stopping: AbortSignal
  },
  gateSessionId: GateSessionId,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  if (!(await leases.take(gateSessionId))) return
  const leaseLost = new AbortController()
  const signal = AbortSignal.any([stopping, leaseLost.signal])
  const renew = async () => {
    // If the database is unavailable, no other process can take the lease either.
    const isHeld = await leases.renew(gateSessionId).catch(() => true)
    if (!isHeld) leaseLost.abort()
  }
  const renewing = setInterval(() => void renew(), leaseMs / 3)
  try {
    await work(signal)
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    clearInterval(renewing)
    await leases.release(gateSessionId).catch(() => {})
  }
}

/** Creates leases that keep two processes from requesting the same account at once. */
export function createApprovalLeases({
  pool,
  owner,
  leaseMs,
}: {
  pool: Db
  owner: string
  leaseMs: number
}) {
  const changesOneRow = async (text: string, values: unknown[]) =>
    (await pool.query(text, values)).rowCount === 1
  return {
    /** Resolves to false while another process holds the lease. */
    take: (gateSessionId: GateSessionId) =>
      changesOneRow(
        `insert into tidegate.gate_leases as l values ($1, $2, ${databaseNow} + $3)
         on conflict (gate_session_id) do update set owner = excluded.owner, expires_at = excluded.expires_at
         where l.expires_at <= ${databaseNow}`,
        [gateSessionId, owner, leaseMs],
      ),
    /** Resolves to false once another process has taken the lease. */
    renew: (gateSessionId: GateSessionId) =>
      changesOneRow(
        `update tidegate.gate_leases set expires_at = ${databaseNow} + $3 where gate_session_id = $1 and owner = $2`,
        [gateSessionId, owner, leaseMs],
      ),
    release: (gateSessionId: GateSessionId) =>
      changesOneRow('delete from tidegate.gate_leases where gate_session_id = $1 and owner = $2', [
        gateSessionId,
        owner,
      ]),
    releaseAll: () => pool.query('delete from tidegate.gate_leases where owner = $1', [owner]),
  }
}

// Runs one query at a time per session, however many requests wait for the outcome.
function createOutcomeWaiter({ pool, applied }: GateParts) {
  const find = (id: GateSessionId) => findGateSession(pool, id)
  const sessions = createRowWaiter<GateSessionId, GateSessionRow>({
    onAdvance: (listener) => applied.onAdvance('gate', () => listener()),
    find: (ids, found) =>
      Promise.allSettled(
        ids.map(async (id) => {
          const session = await find(id)
          if (session && session.status !== 'pending') found(id, session)
        }),
      ),
  })
  return {
    waitFor: (id: GateSessionId, ms: number) =>
      sessions.waitFor(id, { timeoutMs: ms, onTimeout: () => find(id) }),
    close: sessions.close,
  }
}
