import type pg from 'pg'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { Clock } from '../../infra/ids.ts'
import { transaction, tryLock } from '../../infra/postgres/pool.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { endedGraces } from '../../projections/organizations/queries.ts'
import { endGrace } from './commands.ts'

export interface GraceSchedulerOptions {
  pool: pg.Pool
  decideAs: DecideAs
  clock: Clock
  logger: Logger
  /** Milliseconds (default 5000). */
  intervalMs?: number
}

const maxKeys = 100
// The transaction is idle while keys are revoked. The server's connections may be idle for 15 seconds.
const maxLookMs = 3000

/** Revokes keys whose grace after a rotation is over. Several may run, and one works at a time. */
export function runGraceScheduler(options: GraceSchedulerOptions): { stop(): Promise<void> } {
  const { logger, intervalMs = 5000 } = options
  return runPeriodically({
    intervalMs,
    look: async () => (await endGraces(options)) > 0,
    onError: (err) => logger.error({ err }, 'rotated keys were not revoked; the next look tries again'),
  })
}

/**
 * Returns how many keys it revoked, at most 100. A key that cannot be revoked now does not keep others from it: the
 * first failure is thrown at the end. Each key is revoked once even if two schedulers look at the same time, since
 * that is decided as everything about its organization is.
 */
export async function endGraces({ pool, decideAs, clock }: GraceSchedulerOptions): Promise<number> {
  const endAt = performance.now() + maxLookMs
  const decide = decideAs({ type: 'scheduler', id: 'key-grace' })
  return transaction(pool, async (tx) => {
    if (!(await tryLock(tx, 'key-grace-scheduler'))) return 0
    const due = await endedGraces(tx, { now: clock(), limit: maxKeys })
    const failures: unknown[] = []
    let ended = 0
    for (const key of due) {
      if (performance.now() > endAt) break
      await endGrace({ decide, clock }, key).then(
        (revoked) => {
          if (revoked) ended++
        },
        (error) => failures.push(error),
      )
    }
    if (failures.length > 0) throw failures[0]
    return ended
  })
}
