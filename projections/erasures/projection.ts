import { eraseDataKeys } from '../../infra/event-store/data-key-table.ts'
import { isErasure } from '../../infra/event-store/erasures.ts'
import type { RecordedEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import type { Cte } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import {
  column,
  insertRows,
  nullable,
  primaryKey,
  type RowOf,
  table,
} from '../../infra/postgres/table.ts'
import { type Environment, eventTopics, type VisitorErased } from '../../schemas/events.ts'

/** Erasure receipts. A large erasure has several rows. */
export const erasures = table('erasures', {
  id: primaryKey(column.id(), 'event_id'),
  erasure_id: column.id(),
  organization_id: column.id(),
  environment: column.text<Environment>(),
  // null if the erasure of a user was requested.
  visitor_id: nullable(column.id()),
  user_digest: nullable(column.id()),
  session_ids: column.json<string[]>(),
  counts: column.json<Record<string, number>>(),
  erased_at: column.bigint(),
})
export type ErasureRow = RowOf<typeof erasures>

const indexes = `
  create index on erasures (organization_id, environment, visitor_id) where visitor_id is not null;
  create index on erasures (organization_id, environment, user_digest) where user_digest is not null;
`

/** Idempotent deletion of a service's own data about erased sessions. */
export type Eraser = (tx: Tx, erased: VisitorErased[]) => Promise<void>

/**
 * Creates the projection of erasure receipts. It deletes data keys and runs the erasers in the same transaction, so a
 * visible receipt proves that the data is gone. A rebuild deletes again what a restored backup brought back.
 */
export function createErasuresProjection(erasers: Eraser[]): Projection {
  return {
    name: 'erasures',
    version: 1,
    topics: [eventTopics.VisitorErased],
    tables: [erasures.name],
    ddl: erasures.ddl,
    indexes,
    appliedIn: [erasures.name],
    isExclusive: () => false,
    apply: (tx, events) => apply(tx, events, erasers),
    // Tells all processes to drop their cached data keys.
    changedIdsOf: (events) =>
      events.flatMap((event) => (isErasure(event) ? event.data.session_ids : [])),
  }
}

async function apply(tx: Tx, events: RecordedEvent[], erasers: Eraser[]): Promise<Cte[]> {
  const erased = events.filter(isErasure).map(({ data }) => data)
  // Erasers run first, because they take a lock that scoring waits for before it reads data keys.
  for (const erase of erasers) await erase(tx, erased)
  await eraseDataKeys(tx, erased)
  return insertRows(erasures, erased.map(erasureRow))
}

function erasureRow(data: VisitorErased): ErasureRow {
  const { event_id: id, erasure_id, organization_id, environment, visitor_id, user_digest } = data
  const { session_ids, counts, erased_at } = data
  const ids = { id, erasure_id, organization_id, environment, visitor_id, user_digest }
  return { ...ids, session_ids, counts, erased_at }
}
