import { type Periodic, runPeriodically } from '../../../infra/flow/periodic.ts'
import { transaction, tryLock } from '../../../infra/postgres/pool.ts'
import { agedSessions } from '../../../projections/gate/queries.ts'
import type { GateOptions } from '../context.ts'

type RetentionParts = Pick<
  GateOptions,
  'pool' | 'clock' | 'decideAs' | 'eraseSessions' | 'retentionMs' | 'logger'
>

const hourMs = 60 * 60 * 1000
// An erasure waits for all read models; the connection of the lock is idle meanwhile.
const maxSessions = 100

/** Forgets who asked and approved once the time is over. Several processes may run it; one works at a time. */
export function runGateRetention(parts: RetentionParts, intervalMs = hourMs): Periodic {
  return runPeriodically({
    intervalMs,
    look: async () => (await eraseAged(parts)) === maxSessions,
    onError: (err) =>
      parts.logger.error(
        { err },
        'who asked and approved long ago was not erased; the next look tries again',
      ),
  })
}

/** Resolves to how many sessions were erased. */
export function eraseAged({
  pool,
  clock,
  decideAs,
  eraseSessions,
  retentionMs,
}: RetentionParts): Promise<number> {
  return transaction(pool, async (tx) => {
    if (!(await tryLock(tx, 'gate-retention'))) return 0
    const aged = await agedSessions(tx, clock() - retentionMs, maxSessions)
    if (aged.length > 0) await eraseSessions(decideAs({ type: 'scheduler', id: 'gate-retention' }), aged)
    return aged.length
  })
}
