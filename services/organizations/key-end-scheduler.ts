import type pg from 'pg'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import { processDueItems } from '../../infra/flow/due-items.ts'
import type { Clock } from '../../infra/ids.ts'
import { findEndedKeys } from '../../projections/organizations/queries.ts'
import { revokeEndedKey } from './commands.ts'

interface KeyEndSchedulerOptions {
  pool: pg.Pool
  decideAs: DecideAs
  clock: Clock
}

/** Revokes keys that expired or whose grace period is over. Returns their number. Any number of processes may run this. */
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
