import { column, nullable, primaryKey, type RowOf, table } from '../../../infra/postgres/table.ts'
import type { Profile } from './profile.ts'

export const knownVisitors = table('scoring.visitors', {
  visitor_id: primaryKey(column.id()),
  organization_id: column.id(),
  environment: column.text(),
  first_seen_at: column.bigint(),
  last_seen_at: column.bigint(),
  sessions: column.integer(),
  profile: column.json<Profile | null>(),
  /** Key of the visitor's newest client storage; see `storageKeyOf`. */
  storage_key: nullable(column.text()),
  apart_from: nullable(column.id()),
})

/** Links of sessions to visitors, with the keys that each session contributed. Visitors are rebuilt from links. */
export const links = table(
  'scoring.links',
  {
    session_id: primaryKey(column.id()),
    visitor_id: column.id(),
    organization_id: column.id(),
    environment: column.text(),
    linked_at: column.bigint(),
    storage_key: column.text(),
    profile: nullable(column.json<Profile>()),
    /** All keys of the session, concatenated; see `allKeys`. */
    keys: { ...column.hex(), write: (keys: string[]) => Buffer.from(keys.join(''), 'hex') },
    /** Visitor that an operator moved the session away from: the two are different. */
    apart_from: nullable(column.id()),
    /** Time when an operator merged the session's visitor with another one. */
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
