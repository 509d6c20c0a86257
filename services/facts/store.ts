import { buildLock, liveBuild } from '../../infra/event-store/builds.ts'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import { databaseNow } from '../../infra/postgres/lease.ts'
import type { Db, Tx } from '../../infra/postgres/pool.ts'
import type { RowOf } from '../../infra/postgres/table.ts'
import { type factsNotes, factsOrganizations } from '../../projections/sessions/facts-notes.ts'
import { selectFacts } from '../../projections/sessions/facts-schema.ts'
import { defaultHidden } from '../../projections/sessions/session-facts.ts'

export type Note = RowOf<typeof factsNotes>

const notesAtOnce = 500
const rowsAtOnce = 5000

/** Whether an organization has the topic, or had it. */
export async function isTopicInUse(db: Db): Promise<boolean> {
  const { rows } = await db.query<{ is_used: boolean }>(
    `select exists (select from tidegate.facts_organizations)
       or exists (select from read.data_policies where facts_topic) as is_used`,
  )
  return rows[0]?.is_used === true
}

/**
 * Has the rows of organizations whose policies changed noted anew, and from now on what changes of them. Whether there
 * are such organizations. What is noted of them begins with the next transaction.
 */
export async function followPolicies(tx: Tx): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into tidegate.facts_organizations as o (organization_id, policy, noted_up_to, is_noted)
     select organization_id, policy, '', true
     from (select organization_id,
       case when facts_topic then coalesce(hidden_facts, $1)::text else 'off' end as policy
       from read.data_policies) as now
     left join tidegate.facts_organizations known using (organization_id, policy)
     where known.organization_id is null and (policy <> 'off' or exists (
       select from tidegate.facts_organizations where organization_id = now.organization_id))
     on conflict (organization_id) do update set policy = excluded.policy, noted_up_to = '', is_noted = true`,
    [defaultHidden],
  )
  return (rowCount ?? 0) > 0
}

/** Notes some of the rows of an organization whose policy changed; whether there was one. */
export async function noteRows(tx: Tx): Promise<boolean> {
  const { rows } = await tx.query<RowOf<typeof factsOrganizations>>(
    `select ${factsOrganizations.select('o')} from tidegate.facts_organizations o
     where noted_up_to is not null order by organization_id limit 1`,
  )
  const [organization] = rows
  if (!organization) return false
  const { organization_id: id, policy, noted_up_to: after } = organization
  // Transactions that began before its changes were noted have ended, so that their rows are seen.
  if (after === '') await waitForWriters(tx)
  await tx.query(
    `with rows_read as (
       select session_id, organization_id from read.sessions where session_id > $2 order by session_id limit $3
     ), noted as (
       insert into tidegate.facts_notes (session_id) select session_id from rows_read where organization_id = $1
     )
     update tidegate.facts_organizations set
       noted_up_to = (select max(session_id) from rows_read having count(*) = $3),
       is_noted = $4 or (select count(*) from rows_read) = $3
     where organization_id = $1`,
    [id, after, rowsAtOnce, policy !== 'off'],
  )
  return true
}

async function waitForWriters(tx: Tx): Promise<void> {
  const build = await liveBuild(tx, 'sessions')
  if (build) await tx.query('select pg_advisory_xact_lock($1)', [buildLock(build)])
}

export async function findDueNotes(tx: Tx): Promise<Note[]> {
  const { rows } = await tx.query<Note>(
    `select due_at::float8, id::float8, session_id, is_repeat from tidegate.facts_notes
     where due_at <= ${databaseNow} order by due_at, id limit $1`,
    [notesAtOnce],
  )
  return rows
}

/** What is to be read of the sessions, as it is now. Nothing where one has no row, or its organization has no topic. */
export async function readPublished(
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

export async function noteAgain(db: Db, sessionIds: string[]): Promise<void> {
  await db.query('insert into tidegate.facts_notes (session_id) select unnest($1::text[])', [
    sessionIds,
  ])
}

export async function deleteNotes(tx: Tx, notes: Note[]): Promise<void> {
  await tx.query(
    `delete from tidegate.facts_notes using ${listedNotes} where ${isListed}`,
    valuesOf(notes),
  )
}

/** They are due once more, after `ms`. */
export async function repeatNotes(tx: Tx, notes: Note[], { ms }: { ms: number }): Promise<void> {
  await tx.query(
    `update tidegate.facts_notes set due_at = ${databaseNow} + $3, is_repeat = true from ${listedNotes} where ${isListed}`,
    [...valuesOf(notes), ms],
  )
}

const listedNotes = 'unnest($1::bigint[], $2::bigint[]) as listed (due, number)'
const isListed = 'due_at = listed.due and id = listed.number'
const valuesOf = (notes: Note[]) => [notes.map(({ due_at }) => due_at), notes.map(({ id }) => id)]

/** Notes the rows that were decided since then, of organizations that have the topic. How many they are. */
export async function noteSince(
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
