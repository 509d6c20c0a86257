import type { RecordedEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import type { Cte } from '../../infra/postgres/arrays.ts'
import type { Db, Tx } from '../../infra/postgres/pool.ts'
import {
  column,
  insertRows,
  primaryKey,
  type RowOf,
  table,
  untrustedText,
} from '../../infra/postgres/table.ts'
import { type CorrectionKind, type Environment, eventTopics } from '../../schemas/events.ts'

const corrections = table('corrections', {
  id: primaryKey(column.id(), 'event_id'),
  organization_id: column.id(),
  environment: column.text<Environment>(),
  kind: column.text<CorrectionKind>(),
  visitor_id: column.id(),
  other_visitor_id: column.id(),
  session_ids: column.json<string[]>(),
  reason: untrustedText(column.text()),
  corrected_at: column.bigint(),
})
export type CorrectionRow = RowOf<typeof corrections>

export const correctionsProjection: Projection = {
  name: 'corrections',
  version: 1,
  topics: [eventTopics.VisitorCorrected],
  tables: [corrections.name],
  ddl: corrections.ddl,
  indexes: 'create index on corrections (organization_id, environment, visitor_id);',
  appliedIn: [corrections.name],
  isExclusive: () => false,
  apply: async (_: Tx, events: RecordedEvent[]): Promise<Cte[]> =>
    insertRows(
      corrections,
      events.flatMap(({ type, data, meta }) =>
        type === 'VisitorCorrected' ? [{ ...data, id: meta.eventId }] : [],
      ),
    ),
}

interface SplitQuery {
  scope: { organizationId: string; environment: Environment }
  visitorId: string
  newVisitorId: string
}

/** Returns the newest split that moved sessions from the visitor to the new one. */
export async function findSplit(
  db: Db,
  { scope, visitorId, newVisitorId }: SplitQuery,
): Promise<CorrectionRow | undefined> {
  const { rows } = await db.query<CorrectionRow>(
    `select ${corrections.select('c')} from read.corrections c
     where c.organization_id = $1 and c.environment = $2 and c.visitor_id = $3
       and c.other_visitor_id = $4 and c.kind = 'split'
     order by c.corrected_at desc limit 1`,
    [scope.organizationId, scope.environment, visitorId, newVisitorId],
  )
  return rows[0]
}

/**
 * Follows merges and returns the id of the last visitor; undefined if the given one was never merged. That visitor may
 * have no sessions left.
 */
export async function findMergedInto(
  db: Db,
  { organizationId, environment }: SplitQuery['scope'],
  visitorId: string,
): Promise<string | undefined> {
  const { rows } = await db.query<{ id: string }>(
    `with recursive merged (id, steps) as (
       values ($3::text collate "C", 0)
       union all
       select c.visitor_id, steps + 1 from merged join read.corrections c on c.other_visitor_id = merged.id
       where c.organization_id = $1 and c.environment = $2 and c.kind = 'merge' and steps < $4
     )
     select id from merged where steps > 0 order by steps desc limit 1`,
    [organizationId, environment, visitorId, maxMerges],
  )
  return rows[0]?.id
}

// Ends the recursion if two visitors were merged into each other.
const maxMerges = 20

/** Returns the visitors and all that were merged into them, directly or not. */
export async function withMergedVisitors(
  db: Db,
  { organizationId, environment }: SplitQuery['scope'],
  visitorIds: string[],
): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `with recursive merged (id) as (
       select id collate "C" from unnest($3::text[]) as named (id)
       union
       select c.other_visitor_id from merged join read.corrections c on c.visitor_id = merged.id
       where c.organization_id = $1 and c.environment = $2 and c.kind = 'merge'
     )
     select id from merged`,
    [organizationId, environment, visitorIds],
  )
  return rows.map(({ id }) => id)
}

/** Returns the corrections that involve any of the sessions, oldest first. */
export async function correctionsOf(
  db: Db,
  { organizationId, environment }: SplitQuery['scope'],
  sessionIds: string[],
): Promise<CorrectionRow[]> {
  const { rows } = await db.query<CorrectionRow>(
    `select ${corrections.select('c')} from read.corrections c
     where c.organization_id = $1 and c.environment = $2
       and exists (select from json_array_elements_text(c.session_ids::json) s (id) where s.id = any($3))
     order by c.corrected_at, c.event_id`,
    [organizationId, environment, sessionIds],
  )
  return rows
}
