import { ddlOf, type Migrations } from '../../infra/postgres/migrations.ts'
import { column, constrained, nullable, primaryKey, table } from '../../infra/postgres/table.ts'
import type { SessionState } from './session/state.ts'
import { knownVisitors, links, visitorKeys } from './visitors/tables.ts'

// Scoring's working state, derived from the collect topic like a read model. States, visitors and the offsets that
// produced them are committed together, under a lock on the rows of `offsets`. Times are epoch milliseconds.

export const offsets = table(
  'scoring.offsets',
  {
    topic: column.id(),
    partition: column.integer(),
    next_offset: column.bigint(),
    /** Time when the log stored the last record before the offset. */
    log_time: constrained(column.bigint(), 'default 0'),
  },
  { key: ['topic', 'partition'] },
)

/** Large parts of a state that rarely change. They have a column of their own, so most events don't rewrite them. */
export type Constants = Pick<SessionState, 'snapshot' | 'visitor'>

export const sessionStates = table(
  'scoring.sessions',
  {
    session_id: primaryKey(column.id()),
    organization_id: column.id(),
    environment: column.text(),
    opened_at: column.bigint(),
    last_activity_at: column.bigint(),
    final_at: nullable(column.bigint()),
    idled_at: nullable(column.bigint()),
    /** Time when the scheduler ends or deletes the session; see `dueAt`. */
    due_at: column.bigint(),
    partition: nullable(column.integer()),
    state: column.json<Omit<SessionState, keyof Constants>>(),
    constants: nullable(column.json<Constants>()),
  },
  {
    // Two indexes, because most sessions are final, and an erasure must read all open ones quickly: it blocks scoring.
    indexes: ['(due_at) where final_at is null', '(due_at) where final_at is not null'],
    // Leaves room for the next row version on the same page, so updates are HOT and write no index.
    storage: 'fillfactor = 50',
  },
)

// Nearly every event writes `state`, so it stays uncompressed in the row; `constants` goes to TOAST.
const sessionStorage = `
alter table scoring.sessions alter column state set storage main, alter column constants set storage external,
  set (toast_tuple_target = 4080);
`

export const scoringMigrations: Migrations = {
  name: 'scoring',
  schema: 'scoring',
  create: ddlOf(offsets, sessionStates, knownVisitors, links, visitorKeys) + sessionStorage,
}
