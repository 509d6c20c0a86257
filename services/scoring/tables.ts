import { ddlOf, type Migrations } from '../../infra/postgres/migrations.ts'
import { column, constrained, nullable, primaryKey, type RowOf, table } from '../../infra/postgres/table.ts'
import type { SessionState } from './session-state.ts'
import type { Profile } from './visitors/profile.ts'

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
    partition: nullable(column.integer()),
    state: column.json<Omit<SessionState, keyof Constants>>(),
    constants: nullable(column.json<Constants>()),
  },
  { indexes: ['(last_activity_at) where final_at is null', '(opened_at)'] },
)

export const knownVisitors = table('scoring.visitors', {
  visitor_id: primaryKey(column.id()),
  organization_id: column.id(),
  environment: column.text(),
  first_seen_at: column.bigint(),
  last_seen_at: column.bigint(),
  sessions: column.integer(),
  profile: column.json<Profile | null>(),
  lineage: nullable(column.text()),
  apart_from: nullable(column.id()),
})

/** A session of a visitor, with all that the visitor is known by through it. */
export const links = table(
  'scoring.links',
  {
    session_id: primaryKey(column.id()),
    visitor_id: column.id(),
    organization_id: column.id(),
    environment: column.text(),
    linked_at: column.bigint(),
    lineage: column.text(),
    profile: nullable(column.json<Profile>()),
    /** One behind the other. */
    keys: { ...column.hex(), write: (keys: string[]) => Buffer.from(keys.join(''), 'hex') },
    /** Somebody took the session from this visitor: both are two. */
    apart_from: nullable(column.id()),
    /** When somebody said that its visitor and another are one. */
    merged_at: nullable(column.bigint()),
  },
  { indexes: ['(visitor_id)'] },
)
export type Link = RowOf<typeof links>

export const visitorKeys = table(
  'scoring.visitor_keys',
  { key: column.hex(), visitor_id: column.id() },
  { key: ['key', 'visitor_id'], indexes: ['(visitor_id)'] },
)

// A state is written with nearly each event: it stays on its page as it is. What seldom changes is put apart.
const sessionStorage = `
alter table scoring.sessions alter column state set storage main, alter column constants set storage external,
  set (toast_tuple_target = 4080);
`

export const scoringMigrations: Migrations = {
  name: 'scoring',
  schema: 'scoring',
  create: ddlOf(offsets, sessionStates, knownVisitors, links, visitorKeys) + sessionStorage,
}
