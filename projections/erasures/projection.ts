import { eraseDataKeys } from '../../infra/event-store/data-key-table.ts'
import { isErasure } from '../../infra/event-store/erased.ts'
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

/** Receipts of erasures. An erasure of very many sessions has several rows. */
export const erasures = table('erasures', {
  id: primaryKey(column.id(), 'event_id'),
  erasure_id: column.id(),
  organization_id: column.id(),
  environment: column.text<Environment>(),
  // Visitor whose erasure was requested; null for the erasure of a user.
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

/** Deletes what a service stores about erased sessions outside the log. Idempotent. */
export type Eraser = (tx: Tx, erased: VisitorErased[]) => Promise<void>

/**
 * Stores receipts, and deletes keys and states in the same transaction, so a visible receipt proves that they are gone.
 * A rebuild deletes them again, because a restored backup may have brought them back.
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
    // Notifies every process to drop its cached data keys.
    subjectsOf: (events) =>
      events.flatMap((event) => (isErasure(event) ? event.data.session_ids : [])),
  }
}

async function apply(tx: Tx, events: RecordedEvent[], erasers: Eraser[]): Promise<Cte[]> {
  const erased = events.filter(isErasure).map(({ data }) => data)
  // Erasers run first: they take a lock that scoring waits for before it reads the keys.
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
