import { setTimeout as delay } from 'node:timers/promises'
import { createConcurrencyLimit } from '../../../infra/flow/limit.ts'
import { runPeriodically } from '../../../infra/flow/periodic.ts'
import { createRowWaiter } from '../../../infra/flow/row-waiter.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import { databaseNow } from '../../../infra/postgres/lease.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { within } from '../../../infra/timing.ts'
import { findGateSession, startedApprovals } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { Approvals, GateParts } from '../context.ts'
import type { ApprovalDeps } from './account-request.ts'
import { concludeApproval } from './conclude.ts'

export interface ApprovalsOptions extends GateParts {
  sleep?: ApprovalDeps['sleep']
  pollIntervalMs?: number
  /**
   * Concurrency limit of approvals that no request started (default 64, and 16 of an organization). A slow service
   * then blocks its own organization only.
   */
  concurrency?: { max: number; each: number }
}

const sleepUntilAborted: ApprovalDeps['sleep'] = async (ms, signal) =>
  delay(Math.max(0, ms), undefined, { signal })
// For an answer that is on its way.
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
  const { concurrency = { max: 64, each: 16 } } = options
  const leases = createApprovalLeases({ pool, leaseMs, owner: random(12).toString('hex') })
  const outcomes = createOutcomes(options)
  const limit = createConcurrencyLimit(concurrency)
  const running = new Map<GateSessionId, Promise<void>>()
  const stopping = new AbortController()

  async function start(gateSessionId: GateSessionId): Promise<void> {
    const conclude = (signal: AbortSignal) =>
      concludeApproval({ ...options, sleep }, { gateSessionId, signal })
    const done = underLease({ leases, leaseMs, stopping: stopping.signal }, gateSessionId, conclude)
      .catch((err) =>
        logger.warn({ err, gateSessionId }, 'an approval did not go on, trying again'),
      )
      .finally(() => running.delete(gateSessionId))
    running.set(gateSessionId, done)
    await done
  }

  const isIdle = (id: GateSessionId) => !stopping.signal.aborted && !running.has(id)

  /** What another process left, where the concurrency limit allows it. */
  function runInBackground({
    id,
    organization_id,
  }: Pick<GateSessionRow, 'id' | 'organization_id'>): void {
    const leave = isIdle(id) ? limit.tryEnter([organization_id ?? 'this server']) : undefined
    if (leave) void start(id).finally(leave)
  }

  const polling = runPeriodically({
    intervalMs: pollIntervalMs,
    async work() {
      const { max, each } = concurrency
      // Twice as many, because some are of organizations at their limit.
      const idle = await startedApprovals(pool, { each, limit: 2 * max })
      for (const session of idle) runInBackground(session)
      return false
    },
    onError: (err) => logger.warn({ err }, 'started approvals could not be read, trying again'),
  })

  return {
    run(gateSessionId) {
      if (isIdle(gateSessionId)) void start(gateSessionId)
    },
    outcome: outcomes.waitFor,
    async stop() {
      stopping.abort()
      await polling.stop()
      await within(Promise.all(running.values()), stopWithinMs).catch(() => {})
      await leases.releaseAll().catch(() => {})
      outcomes.close()
    },
  }
}

/**
 * Runs `work` if this process can take the approval's lease. The signal of `work` is aborted when the lease is lost or
 * the process stops, and what `work` throws after that is ignored.
 */
async function underLease(
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
  const lost = new AbortController()
  const signal = AbortSignal.any([stopping, lost.signal])
  const renew = async () => {
    // While the database does not answer, no other process can take the lease either.
    const isOurs = await leases.renew(gateSessionId).catch(() => true)
    if (!isOurs) lost.abort()
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

/**
 * Which process works on which approval. Leases keep two processes from asking a service at once. Where both do even so,
 * the session's end is decided once.
 */
export function createApprovalLeases({
  pool,
  owner,
  leaseMs,
}: {
  pool: Db
  owner: string
  leaseMs: number
}) {
  const isOne = async (text: string, values: unknown[]) =>
    (await pool.query(text, values)).rowCount === 1
  return {
    /** False while another process has it. */
    take: (gateSessionId: GateSessionId) =>
      isOne(
        `insert into tidegate.gate_leases as l values ($1, $2, ${databaseNow} + $3)
         on conflict (gate_session_id) do update set owner = excluded.owner, expires_at = excluded.expires_at
         where l.expires_at <= ${databaseNow}`,
        [gateSessionId, owner, leaseMs],
      ),
    /** False once another process has taken it. */
    renew: (gateSessionId: GateSessionId) =>
      isOne(
        `update tidegate.gate_leases set expires_at = ${databaseNow} + $3 where gate_session_id = $1 and owner = $2`,
        [gateSessionId, owner, leaseMs],
      ),
    release: (gateSessionId: GateSessionId) =>
      isOne('delete from tidegate.gate_leases where gate_session_id = $1 and owner = $2', [
        gateSessionId,
        owner,
      ]),
    releaseAll: () => pool.query('delete from tidegate.gate_leases where owner = $1', [owner]),
  }
}

// One query at a time for a session, however many requests wait for it.
function createOutcomes({ pool, applied }: GateParts) {
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
    waitFor: (id: GateSessionId, ms: number) => sessions.waitFor(id, { ms, late: () => find(id) }),
    close: sessions.close,
  }
}
