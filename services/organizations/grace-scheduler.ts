import type pg from 'pg'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import { processDueItems } from '../../infra/flow/in-turn.ts'
import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { Clock } from '../../infra/ids.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { findEndedGraces } from '../../projections/organizations/queries.ts'
import { endGrace } from './commands.ts'

interface GraceSchedulerOptions {
  pool: pg.Pool
  decideAs: DecideAs
  clock: Clock
  logger: Logger
  /** Milliseconds (default 5000). */
  intervalMs?: number
}

/** Revokes rotated keys whose grace period is over. Any number of processes may run it; one works at a time. */
export function runGraceScheduler(options: GraceSchedulerOptions): { stop(): Promise<void> } {
  const { logger, intervalMs = 5000 } = options
  return runPeriodically({
    intervalMs,
    work: async () => (await revokeExpiredGraces(options)) > 0,
    onError: (err) => logger.error({ err }, 'failed to revoke rotated keys; retrying'),
  })
}

/**
 * Returns the number of revoked keys. Each is revoked once even if two schedulers work at the same time, because the
 * decision is made under the organization's lock.
 */
export function revokeExpiredGraces({
  pool,
  decideAs,
  clock,
}: GraceSchedulerOptions): Promise<number> {
  const decide = decideAs({ type: 'scheduler', id: 'key-grace' })
  return processDueItems(pool, 'key-grace-scheduler', {
    findDue: (tx, limit) => findEndedGraces(tx, { now: clock(), limit }),
    work: (key) => endGrace({ decide, clock }, key),
  })
}
