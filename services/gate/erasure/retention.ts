import { type Periodic, runPeriodically } from '../../../infra/flow/periodic.ts'
import { transaction, tryLock } from '../../../infra/postgres/pool.ts'
import { agedSessions } from '../../../projections/gate/queries.ts'
import type { GateOptions } from '../context.ts'

const hourMs = 60 * 60 * 1000
// An erasure waits for all read models, and the connection of the lock is idle meanwhile.
const maxSessions = 100

/** Forgets who requested and approved once the time is over. Several processes may run it; one works at a time. */
export function runGateRetention(options: GateOptions, intervalMs = hourMs): Periodic {
  return runPeriodically({
    intervalMs,
    work: async () => (await eraseAged(options)) === maxSessions,
    onError: (err) =>
      options.logger.error({ err }, 'old sessions of Gate were not erased, trying again'),
  })
}

/** Resolves to how many sessions were erased. */
export function eraseAged(options: GateOptions): Promise<number> {
  const { pool, clock, decideAs, eraseSessions, retentionMs } = options
  return transaction(pool, async (tx) => {
    if (!(await tryLock(tx, 'gate-retention'))) return 0
    const aged = await agedSessions(tx, clock() - retentionMs, maxSessions)
    if (aged.length > 0)
      await eraseSessions(decideAs({ type: 'scheduler', id: 'gate-retention' }), aged)
    return aged.length
  })
}
