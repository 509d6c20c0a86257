import { deleteEndedDataKeys, endDataKeys } from '../../infra/event-store/data-key-table.ts'
import type { EndedData, Projection, Prune } from '../../infra/event-store/projection.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { isUsedText, webhookEventIds } from './erase.ts'
import { changedSession, deleteHoursOfRows, sessionHours, type TimedSession } from './hours.ts'
import { createDecisionsPrune, deleteDecisions } from './prune-decisions.ts'
import { searchTexts, visitorSessions, visitors } from './tables.ts'

// So many rows a statement, which limits how many are locked, and for how long.
const chunk = 1000
const textsAtOnce = 2000

type Ends = 'sessions_before' | 'decisions_before' | 'visitors_before'

// Organization and time, for each that has one.
function limitsOf(ended: EndedData[], name: Ends): [organizationIds: string[], before: number[]] {
  const some = ended.flatMap(({ organization_id, [name]: before }) =>
    before === null ? [] : [{ organization_id, before }],
  )
  return [some.map((one) => one.organization_id), some.map(({ before }) => before)]
}

const scopes = `unnest($1::text[], $2::bigint[]) as ended (organization_id, before)
  cross join (values ('live'), ('test')) as env (environment)`

/**
 * Sessions whose newest decision has ended go with all that is theirs, and so do visitors who were last seen too long
 * ago. Then texts go that nothing is found by any more. Rows that are being written are left for the next time.
 */
export function createSessionsPrune(): Prune {
  const decisions = createDecisionsPrune()
  const texts = createTextsPrune()
  return async (tx, ended) => {
    const sessions = await pruneSessions(tx, ended)
    const ofDecisions = await decisions(tx, ended)
    const ofVisitors = await pruneVisitors(tx, ended)
    const ofKeys = await deleteEndedDataKeys(tx, chunk)
    if (sessions > 0 || ofVisitors > 0 || ofDecisions) texts.again()
    // Texts wait for a step of their own, whose lock waits for nobody who waits for what was deleted here.
    if (sessions > 0 || ofVisitors > 0 || ofDecisions || ofKeys) return true
    return texts.prune(tx, ended)
  }
}

async function pruneSessions(tx: Tx, ended: EndedData[]): Promise<number> {
  const { rows } = await tx.query<TimedSession & { is_linked: boolean }>({
    name: 'prune-sessions',
    text: `with due as materialized (
        select old.session_id from ${scopes} cross join lateral (
          select s.session_id from sessions s
          where s.organization_id = ended.organization_id and s.environment = env.environment
            and s.evaluated_at < ended.before
          order by s.evaluated_at limit ${chunk} for update skip locked
        ) old limit ${chunk}
      )
      delete from sessions s using due where s.session_id = due.session_id
      returning ${changedSession('s')}, exists (select from visitor_sessions l where l.organization_id = s.organization_id
        and l.environment = s.environment and l.visitor_id = s.visitor_id
        and l.session_id = s.session_id) as is_linked`,
    values: limitsOf(ended, 'sessions_before'),
  })
  if (rows.length === 0) return 0
  const ids = rows.map((row) => row.session_id)
  await pruneRestOf(tx, ids)
  await deleteHoursOfRows(tx, rows)
  // As long as its visitor stays, scoring and rebuilds open its events.
  const unlinked = rows.filter(({ is_linked }) => !is_linked)
  await endDataKeys(
    tx,
    unlinked.map((row) => row.session_id),
  )
  return ids.length
}

async function pruneRestOf(tx: Tx, sessionIds: string[]): Promise<void> {
  await deleteDecisions(tx, sessionIds)
  await tx.query('delete from client_user_changes where session_id = any($1)', [sessionIds])
  await tx.query('delete from session_marks where session_id = any($1)', [sessionIds])
  await tx.query('delete from session_events where event_id = any($1)', [
    webhookEventIds(sessionIds),
  ])
  await tx.query('delete from session_events where session_id = any($1)', [sessionIds])
}

async function pruneVisitors(tx: Tx, ended: EndedData[]): Promise<number> {
  const { rows } = await tx.query<{ deleted: number; sessions: string[] }>({
    name: 'prune-visitors',
    text: `with due as materialized (
        select old.* from ${scopes} cross join lateral (
          select v.organization_id, v.environment, v.visitor_id from visitors v
          where v.organization_id = ended.organization_id and v.environment = env.environment
            and v.last_seen_at < ended.before
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
    values: limitsOf(ended, 'visitors_before'),
  })
  const [gone] = rows
  if (gone) await endDataKeys(tx, gone.sessions)
  return gone?.deleted ?? 0
}

const namesOfTexts = {
  sessions: ['page_text', 'agent_text', 'address_text', 'user_text'],
  visitors: ['agent_text', 'address_text'],
}

interface Searched {
  schema?: string
  /** Which rows `u` of visitors count. */
  visitors?: string
}

// Whether something is found by the text `t`.
function isSearched({ schema, visitors = 'true' }: Searched = {}): string {
  const uses = Object.entries(namesOfTexts).flatMap(([table, names]) =>
    names.map(
      (name) =>
        `exists (select from ${schema ? `${schema}.` : ''}${table} u where u.${name} = t.id
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

/** A rebuild may differ in visitors that were made anew after some of their decisions had ended. */
export const comparedRows: NonNullable<Projection['comparedRows']> = {
  // They follow from sessions, and are made and deleted when nobody waits for it.
  // A derived copy of the rows, made beside the work.
  [sessionHours.name]: 'not compared',
  [visitors.name]: { ofEnded: (schema) => hasAllDecisions(schema, 't') },
  [visitorSessions.name]: { ofEnded: (schema) => hasDecisions(schema, 't') },
  [searchTexts.name]: {
    always: isUsedText,
    ofEnded: (schema) => isSearched({ schema, visitors: hasAllDecisions(schema, 'u') }),
  },
}

// Goes through all texts once after something was deleted. Many sessions share a text, so no session has its own to
// take along.
function createTextsPrune() {
  let after: Buffer | undefined = Buffer.alloc(0)

  async function prune(tx: Tx, ended: EndedData[]): Promise<boolean> {
    if (!after) return false
    const { rows } = await tx.query<{ id: Buffer; is_last: boolean; is_due: boolean }>({
      name: 'texts-to-prune',
      text: `with page as materialized (
          select id, organization_id from search_texts where id > $1 order by id limit ${textsAtOnce}
        )
        select id, t.organization_id = any($2) and not ${isSearched()} as is_due from page t order by id`,
      values: [after, ended.map(({ organization_id }) => organization_id)],
    })
    const due = rows.filter(({ is_due }) => is_due).map(({ id }) => id)
    if (due.length > 0) await deleteTexts(tx, due)
    after = rows.length < textsAtOnce ? undefined : rows.at(-1)?.id
    return after !== undefined
  }

  return {
    prune,
    again() {
      after = Buffer.alloc(0)
    },
  }
}

// Nobody writes either meanwhile: one that begins to use a text finds it there and writes it not again.
async function deleteTexts(tx: Tx, ids: Buffer[]): Promise<void> {
  await tx.query(`set local lock_timeout = '2s'; lock table sessions, visitors in share mode`)
  await tx.query(`delete from search_texts t where t.id = any($1) and not ${isSearched()}`, [ids])
}
