import { deleteEndedDataKeys, markDataKeysEnded } from '../../infra/event-store/data-key-table.ts'
import type { Projection, Prune, RetentionCutoffs } from '../../infra/event-store/projection.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { isReferencedSql, webhookEventIds } from './erase.ts'
import { deleteRollUps, sessionHours, type TimedSession, timedSessionSql } from './hours.ts'
import { createDecisionPruner, deleteDecisions } from './prune-decisions.ts'
import { searchTexts, visitorSessions, visitors } from './tables.ts'

// Rows per statement; limits the number and duration of locks.
const chunk = 1000
const textChunk = 2000

type CutoffName = 'sessions_before' | 'decisions_before' | 'visitors_before'

// Returns the organizations that have the cutoff, and the cutoffs.
function cutoffParameters(cutoffs: RetentionCutoffs[], name: CutoffName): [string[], number[]] {
  const present = cutoffs.filter(({ [name]: before }) => before !== null)
  return [present.map((row) => row.organization_id), present.map((row) => Number(row[name]))]
}

const scopesSql = `unnest($1::text[], $2::bigint[]) as cutoff (organization_id, before)
  cross join (values ('live'), ('test')) as env (environment)`

/**
 * Returns a function that deletes expired sessions with all their rows, expired decisions and visitors, and then
 * unreferenced search texts. It skips locked rows until the next call.
 */
export function createSessionPruner(): Prune {
  const pruneDecisions = createDecisionPruner()
  const texts = createTextPruner()
  return async (tx, cutoffs) => {
    const sessions = await pruneSessions(tx, cutoffs)
    const hasDecisionsLeft = await pruneDecisions(tx, cutoffs)
    const visitorRows = await pruneVisitors(tx, cutoffs)
    const hasKeysLeft = await deleteEndedDataKeys(tx, chunk)
    const isChanged = sessions > 0 || visitorRows > 0 || hasDecisionsLeft
    if (isChanged) texts.restart()
    // Texts are deleted in a later transaction: waiting for the table lock while holding row locks could deadlock.
    if (isChanged || hasKeysLeft) return true
    return texts.prune(tx, cutoffs)
  }
}

async function pruneSessions(tx: Tx, cutoffs: RetentionCutoffs[]): Promise<number> {
  const { rows } = await tx.query<TimedSession & { is_linked: boolean }>({
    name: 'prune-sessions',
    text: `with due as materialized (
        select old.session_id from ${scopesSql} cross join lateral (
          select s.session_id from sessions s
          where s.organization_id = cutoff.organization_id and s.environment = env.environment
            and s.evaluated_at < cutoff.before
          order by s.evaluated_at limit ${chunk} for update skip locked
        ) old limit ${chunk}
      )
      delete from sessions s using due where s.session_id = due.session_id
      returning ${timedSessionSql('s')}, exists (select from visitor_sessions l where l.organization_id = s.organization_id
        and l.environment = s.environment and l.visitor_id = s.visitor_id
        and l.session_id = s.session_id) as is_linked`,
    values: cutoffParameters(cutoffs, 'sessions_before'),
  })
  if (rows.length === 0) return 0
  const ids = rows.map((row) => row.session_id)
  await deleteSessionRows(tx, ids)
  await deleteRollUps(tx, rows)
  // While the visitor is kept, scoring and rebuilds still decrypt the session's events.
  const unlinked = rows.filter(({ is_linked }) => !is_linked)
  await markDataKeysEnded(
    tx,
    unlinked.map((row) => row.session_id),
  )
  return ids.length
}

async function deleteSessionRows(tx: Tx, sessionIds: string[]): Promise<void> {
  await deleteDecisions(tx, sessionIds)
  await tx.query('delete from client_user_changes where session_id = any($1)', [sessionIds])
  await tx.query('delete from session_marks where session_id = any($1)', [sessionIds])
  await tx.query('delete from session_events where event_id = any($1)', [
    webhookEventIds(sessionIds),
  ])
  await tx.query('delete from session_events where session_id = any($1)', [sessionIds])
}

async function pruneVisitors(tx: Tx, cutoffs: RetentionCutoffs[]): Promise<number> {
  const { rows } = await tx.query<{ deleted: number; sessions: string[] }>({
    name: 'prune-visitors',
    text: `with due as materialized (
        select old.* from ${scopesSql} cross join lateral (
          select v.organization_id, v.environment, v.visitor_id from visitors v
          where v.organization_id = cutoff.organization_id and v.environment = env.environment
            and v.last_seen_at < cutoff.before
          order by v.last_seen_at limit ${chunk} for update skip locked
        ) old limit ${chunk}
      ),
      gone as (
        delete from visitors v using due where v.organization_id = due.organization_id
          and v.environment = due.environment and v.visitor_id = due.visitor_id
        returning v.organization_id, v.environment, v.visitor_id
      ),
      links as (
        delete from visitor_sessions l using gone where l.organization_id = gone.organization_id
          and l.environment = gone.environment and l.visitor_id = gone.visitor_id
        returning l.session_id
      )
      select (select count(*)::integer from gone) as deleted,
        array(select session_id from links l where not exists (
          select from sessions s where s.session_id = l.session_id)) as sessions`,
    values: cutoffParameters(cutoffs, 'visitors_before'),
  })
  const [result] = rows
  if (result) await markDataKeysEnded(tx, result.sessions)
  return result?.deleted ?? 0
}

const textColumns = {
  sessions: ['page_text', 'agent_text', 'address_text', 'user_text'],
  visitors: ['agent_text', 'address_text'],
}

interface SearchedRows {
  schema?: string
  /** SQL condition on the rows `u` of visitors; default: all. */
  visitors?: string
}

// Returns SQL that is true if a session or visitor refers to the search text `t`.
function isSearchedSql({ schema, visitors = 'true' }: SearchedRows = {}): string {
  const uses = Object.entries(textColumns).flatMap(([table, columns]) =>
    columns.map(
      (column) =>
        `exists (select from ${schema ? `${schema}.` : ''}${table} u where u.${column} = t.id
          and ${table === 'visitors' ? visitors : 'true'})`,
    ),
  )
  return `(${uses.join(' or ')})`
}

const hasDecisions = (schema: string, session: string) =>
  `exists (select from ${schema}.decisions d where d.session_id = ${session}.session_id)`
const hasAllDecisions = (schema: string, visitor: string) =>
  `not exists (select from ${schema}.visitor_sessions l where l.organization_id = ${visitor}.organization_id
    and l.environment = ${visitor}.environment and l.visitor_id = ${visitor}.visitor_id
    and not ${hasDecisions(schema, 'l')})`

/** Rows that a rebuild must reproduce. Visitors can differ if some of their decisions had expired. */
export const comparedRows: NonNullable<Projection['comparedRows']> = {
  // Roll-ups are a cache that is computed in the background.
  [sessionHours.name]: 'not compared',
  [visitors.name]: { whenDataExpired: (schema) => hasAllDecisions(schema, 't') },
  [visitorSessions.name]: { whenDataExpired: (schema) => hasDecisions(schema, 't') },
  [searchTexts.name]: {
    always: isReferencedSql,
    whenDataExpired: (schema) => isSearchedSql({ schema, visitors: hasAllDecisions(schema, 'u') }),
  },
}

// Scans all texts once after rows were deleted, because sessions share texts.
function createTextPruner() {
  let after: Buffer | undefined = Buffer.alloc(0)

  async function prune(tx: Tx, cutoffs: RetentionCutoffs[]): Promise<boolean> {
    if (!after) return false
    const { rows } = await tx.query<{ id: Buffer; is_last: boolean; is_due: boolean }>({
      name: 'texts-to-prune',
      text: `with page as materialized (
          select id, organization_id from search_texts where id > $1 order by id limit ${textChunk}
        )
        select id, t.organization_id = any($2) and not ${isSearchedSql()} as is_due from page t order by id`,
      values: [after, cutoffs.map(({ organization_id }) => organization_id)],
    })
    const due = rows.filter(({ is_due }) => is_due).map(({ id }) => id)
    if (due.length > 0) await deleteTexts(tx, due)
    after = rows.length < textChunk ? undefined : rows.at(-1)?.id
    return after !== undefined
  }

  return {
    prune,
    restart() {
      after = Buffer.alloc(0)
    },
  }
}

// Locks out writers, because a writer that starts to use an existing text does not insert it again.
async function deleteTexts(tx: Tx, ids: Buffer[]): Promise<void> {
  await tx.query(`set local lock_timeout = '2s'; lock table sessions, visitors in share mode`)
  await tx.query(`delete from search_texts t where t.id = any($1) and not ${isSearchedSql()}`, [
    ids,
  ])
}
