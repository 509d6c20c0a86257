import type pg from 'pg'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import { processDueItems } from '../../infra/flow/due-items.ts'
import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { Clock } from '../../infra/ids.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { findExpiredGracePeriods } from '../../projections/organizations/queries.ts'
import { revokeAfterGracePeriod } from './commands.ts'

interface GraceSchedulerOptions {
  pool: pg.Pool
  decideAs: DecideAs
  clock: Clock
  logger: Logger
  /** Milliseconds (default 5000). */
  intervalMs?: number
}

/** Revokes rotated keys after their grace period. Any number of processes may run this; one works at a time. */
export function runGraceScheduler(options: GraceSchedulerOptions): { stop(): Promise<void> } {
  const { logger, intervalMs = 5000 } = options
  return runPeriodically({
    intervalMs,
    work: async () => (await revokeKeysAfterGracePeriod(options)) > 0,
    onError: (err) => logger.error({ err }, 'failed to revoke rotated keys; retrying'),
  })
}

/**
 * Returns the number of revoked keys. Safe to run concurrently, because each key is revoked under the organization's
 * lock.
 */
export function revokeKeysAfterGracePeriod({
  pool,
  decideAs,
  clock,
}: GraceSchedulerOptions): Promise<number> {
  const decide = decideAs({ type: 'scheduler', id: 'key-grace' })
  return processDueItems(pool, 'key-grace-scheduler', {
    findDue: (tx, limit) => findExpiredGracePeriods(tx, { now: clock(), limit }),
    work: (key) => revokeAfterGracePeriod({ decide, clock }, key),
  })
}
