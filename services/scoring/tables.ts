import { ddlOf, type Migrations } from '../../infra/postgres/migrations.ts'
import { column, constrained, nullable, primaryKey, table } from '../../infra/postgres/table.ts'
import type { SessionState } from './session/state.ts'
import { knownVisitors, links, visitorKeys } from './visitors/tables.ts'

// Scoring's own memory, a view of the collect topic like any read model. `offsets` guards it: state, visitors and
// the offset that produced them are committed together. Times are epoch milliseconds.

export const offsets = table(
  'scoring.offsets',
  {
    topic: column.id(),
    partition: column.integer(),
    next_offset: column.bigint(),
    /** When the log stored the last record before the offset. */
    log_time: constrained(column.bigint(), 'default 0'),
  },
  { key: ['topic', 'partition'] },
)

/** The large parts of a state, which seldom change: they are not written again with each event. */
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
    /** When the scheduler looks at it: see `dueAt`. */
    due_at: column.bigint(),
    partition: nullable(column.integer()),
    state: column.json<Omit<SessionState, keyof Constants>>(),
    constants: nullable(column.json<Constants>()),
  },
  {
    // Two, because an erasure reads all open sessions while scoring waits, and final ones are many more.
    indexes: ['(due_at) where final_at is null', '(due_at) where final_at is not null'],
    // A row fills up to half of a page. Its next version goes into the other half, and no index has to be written.
    storage: 'fillfactor = 50',
  },
)

// A state is written with nearly each event: it stays on its page as it is. What seldom changes is stored in a column of its own.
const sessionStorage = `
alter table scoring.sessions alter column state set storage main, alter column constants set storage external,
  set (toast_tuple_target = 4080);
`

export const scoringMigrations: Migrations = {
  name: 'scoring',
  schema: 'scoring',
  create: ddlOf(offsets, sessionStates, knownVisitors, links, visitorKeys) + sessionStorage,
}
