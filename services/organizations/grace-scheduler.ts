import type pg from 'pg'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import { workOffInTurn } from '../../infra/flow/in-turn.ts'
import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { Clock } from '../../infra/ids.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { endedGraces } from '../../projections/organizations/queries.ts'
import { endGrace } from './commands.ts'

interface GraceSchedulerOptions {
  pool: pg.Pool
  decideAs: DecideAs
  clock: Clock
  logger: Logger
  /** Milliseconds (default 5000). */
  intervalMs?: number
}

/** Revokes keys whose grace after a rotation is over. Several may run, and one works at a time. */
export function runGraceScheduler(options: GraceSchedulerOptions): { stop(): Promise<void> } {
  const { logger, intervalMs = 5000 } = options
  return runPeriodically({
    intervalMs,
    work: async () => (await endGraces(options)) > 0,
    onError: (err) => logger.error({ err }, 'rotated keys were not revoked, trying again'),
  })
}

/**
 * Returns how many keys it revoked. Each is revoked once even if two schedulers work at the same time, since that is
 * decided as everything about its organization is.
 */
export function endGraces({ pool, decideAs, clock }: GraceSchedulerOptions): Promise<number> {
  const decide = decideAs({ type: 'scheduler', id: 'key-grace' })
  return workOffInTurn(pool, 'key-grace-scheduler', {
    findDue: (tx, limit) => endedGraces(tx, { now: clock(), limit }),
    work: (key) => endGrace({ decide, clock }, key),
  })
}
