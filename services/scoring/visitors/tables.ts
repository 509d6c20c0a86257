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
  /** See `storageKeyOf`: of the storage that came last without any before. */
  storage_key: nullable(column.text()),
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
    storage_key: column.text(),
    profile: nullable(column.json<Profile>()),
    /** All that `visitorKeysOf` has, one behind the other. */
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
