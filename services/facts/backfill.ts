// Backfill of the facts topic: when an organization's policy changes, all its sessions are enqueued in the outbox.
// Columns of tidegate.facts_organizations, which has no row for an organization until its topic is first turned on:
//   noted_up_to (the cursor): '' = backfill not started, a session id = enqueued up to there, null = finished.
//   policy: the policy of the last backfill, as the list of hidden columns, or `off`.
//   is_noted: change capture is on. Stays on after the topic is turned off, until tombstones for all sessions are
//     enqueued.
// Invariant: change capture commits before the backfill reads its first row, so a row that changes meanwhile is
// enqueued by at least one of them.

import { buildLock, findLiveBuild } from '../../infra/event-store/builds.ts'
import type { Db, Tx } from '../../infra/postgres/pool.ts'
import type { RowOf } from '../../infra/postgres/table.ts'
import { factsOrganizations } from '../../projections/sessions/facts-outbox.ts'
import { defaultHiddenFacts } from '../../projections/sessions/session-facts.ts'

/** Returns true if the topic is or was on for any organization. */
export async function isTopicInUse(db: Db): Promise<boolean> {
  const { rows } = await db.query<{ is_used: boolean }>(
    `select exists (select from tidegate.facts_organizations)
       or exists (select from read.data_policies where facts_topic) as is_used`,
  )
  return rows[0]?.is_used === true
}

/**
 * Starts a backfill for each organization whose policy changed: resets its cursor and turns on change capture. Returns
 * true if any was started. Capture takes effect at commit, so call `backfillBatch` in a later transaction.
 */
export async function startBackfills(tx: Tx): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into tidegate.facts_organizations as o (organization_id, policy, noted_up_to, is_noted)
     select organization_id, policy, '', true
     from (select organization_id,
       case when facts_topic then coalesce(hidden_facts, $1)::text else 'off' end as policy
       from read.data_policies) as current
     left join tidegate.facts_organizations unchanged using (organization_id, policy)
     where unchanged.organization_id is null and (policy <> 'off' or exists (
       select from tidegate.facts_organizations where organization_id = current.organization_id))
     on conflict (organization_id) do update set policy = excluded.policy, noted_up_to = '', is_noted = true`,
    [defaultHiddenFacts],
  )
  return (rowCount ?? 0) > 0
}

// Sessions read per batch, including those of other organizations.
const batchSize = 5000

/** Enqueues the next batch of one unfinished backfill and advances its cursor. Returns false if none is unfinished. */
export async function backfillBatch(tx: Tx): Promise<boolean> {
  const { rows } = await tx.query<RowOf<typeof factsOrganizations>>(
    `select ${factsOrganizations.select('o')} from tidegate.facts_organizations o
     where noted_up_to is not null order by organization_id limit 1`,
  )
  const [organization] = rows
  if (!organization) return false
  const { organization_id: id, policy, noted_up_to: cursor } = organization
  if (cursor === '') await waitForWriters(tx)
  await tx.query(
    `with batch as (
       select session_id, organization_id from read.sessions where session_id > $2 order by session_id limit $3
     ), enqueued as (
       insert into tidegate.facts_notes (session_id) select session_id from batch where organization_id = $1
     )
     update tidegate.facts_organizations set
       noted_up_to = (select max(session_id) from batch having count(*) = $3), -- null = finished: the batch is not full
       is_noted = $4 or (select count(*) from batch) = $3
     where organization_id = $1`,
    [id, cursor, batchSize, policy !== 'off'],
  )
  return true
}

// Waits for transactions that began before change capture was turned on, so that the backfill sees their rows. They
// hold `buildLock` shared until they end.
async function waitForWriters(tx: Tx): Promise<void> {
  const build = await findLiveBuild(tx, 'sessions')
  if (build) await tx.query('select pg_advisory_xact_lock($1)', [buildLock(build)])
}
