import type pg from 'pg'
import type { Config } from '../../infra/config.ts'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import { processDueItems } from '../../infra/flow/due-items.ts'
import type { Clock } from '../../infra/ids.ts'
import { listRetention } from '../../projections/policies/queries.ts'
import type { RetentionDays } from '../../projections/policies/tables.ts'
import { recordOrganizationDataExpiry } from './data-policies.ts'
import { decideExpiration, retentionOf } from './decide-data-policy.ts'

interface RetentionOptions {
  pool: pg.Pool
  decideAs: DecideAs
  clock: Clock
  config: RetentionSettings
}

type RetentionSettings = Pick<
  Config,
  | 'SESSION_RETENTION_DAYS'
  | 'DECISION_RETENTION_DAYS'
  | 'VISITOR_RETENTION_DAYS'
  | 'WEBHOOK_RETENTION_DAYS'
>

export function defaultRetentionOf(config: RetentionSettings): RetentionDays {
  return {
    session_days: config.SESSION_RETENTION_DAYS ?? null,
    decision_days: config.DECISION_RETENTION_DAYS ?? null,
    visitor_days: config.VISITOR_RETENTION_DAYS ?? null,
    webhook_days: config.WEBHOOK_RETENTION_DAYS ?? null,
  }
}

/**
 * Records the expiry for each organization with newly expired data, and returns their number. Any number of processes
 * may run this; one works at a time.
 */
export function recordDataExpiry({
  pool,
  decideAs,
  clock,
  config,
}: RetentionOptions): Promise<number> {
  const defaults = defaultRetentionOf(config)
  const decide = decideAs({ type: 'scheduler', id: 'data-retention' })
  return processDueItems(pool, 'data-retention-scheduler', {
    async findDue(tx, limit) {
      const now = clock()
      const organizations = await listRetention(tx)
      return organizations
        .map(({ organizationId, policy, expired }) => ({
          expired,
          command: { organizationId, days: retentionOf(policy, defaults) },
        }))
        .filter(({ expired, command }) => decideExpiration(expired, { ...command, now }).length > 0)
        .slice(0, limit)
    },
    work: ({ command }) => recordOrganizationDataExpiry({ decide, clock }, command),
  })
}
