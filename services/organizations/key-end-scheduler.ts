import type pg from 'pg'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import { processDueItems } from '../../infra/flow/due-items.ts'
import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { Clock } from '../../infra/ids.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { findEndedKeys } from '../../projections/organizations/queries.ts'
import { revokeEndedKey } from './commands.ts'

interface KeyEndSchedulerOptions {
  pool: pg.Pool
  decideAs: DecideAs
  clock: Clock
  logger: Logger
  /** Milliseconds (default 5000). */
  intervalMs?: number
}

/** Revokes keys that expired or whose grace period is over. Any number of processes may run this; one works at a time. */
export function runKeyEndScheduler(options: KeyEndSchedulerOptions): { stop(): Promise<void> } {
  const { logger, intervalMs = 5000 } = options
  return runPeriodically({
    intervalMs,
    work: async () => (await revokeEndedKeys(options)) > 0,
    onError: (err) => logger.error({ err }, 'failed to revoke ended API keys; retrying'),
  })
}

/**
 * Returns the number of revoked keys. Safe to run concurrently, because each key is revoked under the organization's
 * lock.
 */
export function revokeEndedKeys({
  pool,
  decideAs,
  clock,
}: KeyEndSchedulerOptions): Promise<number> {
  const decide = decideAs({ type: 'scheduler', id: 'key-end' })
  return processDueItems(pool, 'key-end-scheduler', {
    findDue: (tx, limit) => findEndedKeys(tx, { now: clock(), limit }),
    work: (key) => revokeEndedKey({ decide, clock }, key),
  })
}
