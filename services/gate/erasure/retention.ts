import { type Periodic, runPeriodically } from '../../../infra/flow/periodic.ts'
import { transaction, tryLock } from '../../../infra/postgres/pool.ts'
import { findSessionsEndedBefore } from '../../../projections/gate/queries.ts'
import type { GateOptions } from '../context.ts'

const hourMs = 60 * 60 * 1000
// Bounds the transaction that holds the lock, because an erasure waits for all read models.
const maxSessions = 100

/** Starts the erasure of sessions past retention. Any number of processes can run it; one works at a time. */
export function runGateRetention(options: GateOptions, intervalMs = hourMs): Periodic {
  return runPeriodically({
    intervalMs,
    work: async () => (await erasePastRetention(options)) === maxSessions,
    onError: (err) =>
      options.logger.error({ err }, 'failed to erase expired Gate sessions; retrying'),
  })
}

/** Erases the personal data of up to 100 sessions past retention and returns their number. */
export function erasePastRetention(options: GateOptions): Promise<number> {
  const { pool, clock, decideAs, eraseSessions, retentionMs } = options
  return transaction(pool, async (tx) => {
    if (!(await tryLock(tx, 'gate-retention'))) return 0
    const sessions = await findSessionsEndedBefore(tx, clock() - retentionMs, maxSessions)
    if (sessions.length > 0)
      await eraseSessions(decideAs({ type: 'scheduler', id: 'gate-retention' }), sessions)
    return sessions.length
  })
}
