// Outbox of the facts topic: an entry in tidegate.facts_notes asks the publisher to publish a session's current row.
// An entry's life:
//   1. Enqueued, due at once: by the triggers when a row is written or deleted (change capture), by a backfill
//      (backfill.ts), or by `tidegate facts republish`. A session may have several entries, in no order.
//   2. Published (publisher.ts): the current row, or a tombstone (null) if the session has no row.
//   3. Deleted. A tombstone is first rescheduled (`is_repeat`) and published again, in case another publisher hangs in
//      an append and writes an older row after the tombstone.
// Invariants: an entry is deleted only in the transaction that published it, so delivery is at least once. A record is
// always the current row, never the row at the time of the change, so the order of entries does not matter.

import type { EventCodec } from '../../infra/event-store/codec.ts'
import { databaseNow } from '../../infra/postgres/lease.ts'
import type { Db, Tx } from '../../infra/postgres/pool.ts'
import type { RowOf } from '../../infra/postgres/table.ts'
import type { factsOutbox } from '../../projections/sessions/facts-outbox.ts'
import { selectFacts } from '../../projections/sessions/facts-schema.ts'

export type OutboxEntry = RowOf<typeof factsOutbox>

const maxEntries = 500

export async function findDueEntries(tx: Tx): Promise<OutboxEntry[]> {
  const { rows } = await tx.query<OutboxEntry>(
    `select due_at::float8, id::float8, session_id, is_repeat from tidegate.facts_notes
     where due_at <= ${databaseNow} order by due_at, id limit $1`,
    [maxEntries],
  )
  return rows
}

/** Returns encoded current rows by session id, without sessions that have no row or whose organization has no topic. */
export async function readCurrentFacts(
  { tx, codec }: { tx: Tx; codec: EventCodec },
  sessionIds: string[],
): Promise<Map<string, Buffer>> {
  const { rows } = await tx.query<{ session_id: string }>({
    name: 'facts-to-publish',
    text: `select ${selectFacts('f')} from read.session_facts f
      join read.data_policies p on p.organization_id = f.organization_id and p.facts_topic
      where f.session_id = any($1)`,
    values: [sessionIds],
  })
  return new Map(rows.map((row) => [row.session_id, codec.encodeFacts(row)]))
}

export async function enqueueFacts(db: Db, sessionIds: string[]): Promise<void> {
  await db.query('insert into tidegate.facts_notes (session_id) select unnest($1::text[])', [
    sessionIds,
  ])
}

/** Enqueues all sessions scored since a time, of one or all organizations with the topic. Returns their number. */
export async function enqueueScoredSince(
  db: Db,
  { since, organizationId }: { since: number; organizationId: string | undefined },
): Promise<number> {
  const { rowCount } = await db.query(
    `insert into tidegate.facts_notes (session_id) select s.session_id
     from read.sessions s join read.data_policies p on p.organization_id = s.organization_id and p.facts_topic
     where s.evaluated_at >= $1 and s.organization_id = coalesce($2, s.organization_id)`,
    [since, organizationId],
  )
  return rowCount ?? 0
}

export async function deleteEntries(tx: Tx, entries: OutboxEntry[]): Promise<void> {
  await tx.query(
    `delete from tidegate.facts_notes using ${entryKeys} where ${matchesKey}`,
    keyValuesOf(entries),
  )
}

/** Makes the entries of published tombstones due again after `delayMs`. */
export async function rescheduleTombstones(
  tx: Tx,
  entries: OutboxEntry[],
  { delayMs }: { delayMs: number },
): Promise<void> {
  await tx.query(
    `update tidegate.facts_notes set due_at = ${databaseNow} + $3, is_repeat = true from ${entryKeys} where ${matchesKey}`,
    [...keyValuesOf(entries), delayMs],
  )
}

const entryKeys = 'unnest($1::bigint[], $2::bigint[]) as listed (due, number)'
const matchesKey = 'due_at = listed.due and id = listed.number'
const keyValuesOf = (entries: OutboxEntry[]) => [
  entries.map(({ due_at }) => due_at),
  entries.map(({ id }) => id),
]
