import type pg from 'pg'
import type { Config } from '../../infra/config.ts'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import { type Periodic, runPeriodically } from '../../infra/flow/periodic.ts'
import type { Clock } from '../../infra/ids.ts'
import { transaction, tryLock } from '../../infra/postgres/pool.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { listKeptData } from '../../projections/policies/queries.ts'
import type { RetentionDays } from '../../projections/policies/tables.ts'
import { expireData } from './data-policies.ts'
import { expirationOf, isSameExpiration, keptDays } from './decide-data-policy.ts'

interface RetentionOptions {
  pool: pg.Pool
  decideAs: DecideAs
  clock: Clock
  logger: Logger
  config: RetentionSettings
  intervalMs?: number
}

type RetentionSettings = Pick<
  Config,
  'SESSION_RETENTION_DAYS' | 'DECISION_RETENTION_DAYS' | 'VISITOR_RETENTION_DAYS' | 'WEBHOOK_RETENTION_DAYS'
>

export function defaultDays(config: RetentionSettings): RetentionDays {
  return {
    session_days: config.SESSION_RETENTION_DAYS ?? null,
    decision_days: config.DECISION_RETENTION_DAYS ?? null,
    visitor_days: config.VISITOR_RETENTION_DAYS ?? null,
    webhook_days: config.WEBHOOK_RETENTION_DAYS ?? null,
  }
}

const maxOrganizations = 100
// The transaction is idle meanwhile. The server's connections may be idle for 15 seconds.
const maxLookMs = 3000

/** Records what has ended of each organization's data. Several may run, and one works at a time. */
export function runRetentionScheduler(options: RetentionOptions): Periodic {
  const { logger, intervalMs = 600_000 } = options
  return runPeriodically({
    intervalMs,
    look: async () => (await expireOldData(options)) > 0,
    onError: (err) => logger.error({ err }, 'ended data were not recorded; the next look tries again'),
  })
}

export async function expireOldData({ pool, decideAs, clock, config }: RetentionOptions): Promise<number> {
  const defaults = defaultDays(config)
  const endAt = performance.now() + maxLookMs
  const decide = decideAs({ type: 'scheduler', id: 'data-retention' })
  return transaction(pool, async (tx) => {
    if (!(await tryLock(tx, 'data-retention-scheduler'))) return 0
    const now = clock()
    const due = (await listKeptData(tx))
      .map(({ organizationId, policy, expired }) => ({
        organizationId,
        days: keptDays(policy, defaults),
        expired,
      }))
      .filter(({ days, expired }) => !isSameExpiration(expired, expirationOf(days, expired, now)))
    let ended = 0
    for (const { organizationId, days } of due.slice(0, maxOrganizations)) {
      if (performance.now() > endAt) break
      if (await expireData({ decide, clock }, { organizationId, days })) ended++
    }
    return ended
  })
}
