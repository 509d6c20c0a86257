import type { Tx } from '../../infra/postgres/pool.ts'
import type { VisitorErased } from '../../schemas/events.ts'
import { remakeVisitor } from './apply-reassignments.ts'
import { requestTexts } from './apply-visitors.ts'
import { readEvent } from './stored-event.ts'

// Deletes the rows of erased sessions. A visitor of whom others are left is made anew of these.
export async function eraseSessions(tx: Tx, erased: VisitorErased[]): Promise<void> {
  for (const { organization_id, environment, ...named } of erased) {
    const { visitors, texts } = await deleteSessions(tx, named)
    await tx.query(
      `delete from visitor_sessions
       where organization_id = $1 and environment = $2 and visitor_id = any($3) and session_id = any($4)`,
      [organization_id, environment, visitors, named.session_ids],
    )
    for (const visitor_id of visitors) await remakeVisitor(tx, { organization_id, environment, visitor_id })
    await deleteUnusedTexts(tx, texts)
  }
}

interface Deleted {
  visitors: string[]
  // Ids of what searches found the sessions by.
  texts: Buffer[]
}

type Named = Pick<VisitorErased, 'session_ids' | 'erased_visitor_ids' | 'changed_visitor_ids'>

async function deleteSessions(tx: Tx, named: Named): Promise<Deleted> {
  const sessionIds = named.session_ids
  const decisions = await tx.query<{ event: Buffer; visitor_id: string | null }>(
    `with gone as (delete from decisions where session_id = any($1) returning event_id, event, visitor_id),
      told as (delete from session_events
        where decision_id in (select event_id from gone) or session_id = any($1))
     select event, visitor_id from gone`,
    [sessionIds],
  )
  await tx.query('delete from sessions where session_id = any($1)', [sessionIds])
  const changes = await tx.query<{ user_text: Buffer | null }>(
    'delete from client_user_changes where session_id = any($1) returning user_text',
    [sessionIds],
  )
  const ofRequests = decisions.rows.flatMap(({ event }) => Object.values(requestTexts(readEvent(event))))
  const found = decisions.rows.flatMap(({ visitor_id }) => visitor_id ?? [])
  return {
    // Retention may have deleted the decisions before.
    visitors: [...new Set([...found, ...named.erased_visitor_ids, ...named.changed_visitor_ids])],
    texts: [...ofRequests.map(({ id }) => id), ...changes.rows.flatMap(({ user_text }) => user_text ?? [])],
  }
}

// Where the text is found: sessions and visitors refer to it, and so do changes of a session's user.
const references = [
  ['sessions', 'page_text'],
  ['sessions', 'agent_text'],
  ['sessions', 'address_text'],
  ['sessions', 'user_text'],
  ['visitors', 'agent_text'],
  ['visitors', 'address_text'],
  ['client_user_changes', 'user_text'],
] as const

async function deleteUnusedTexts(tx: Tx, texts: Buffer[]): Promise<void> {
  if (texts.length === 0) return
  const used = references.map(([table, column]) => `select from ${table} where ${column} = t.id`)
  await tx.query(
    `delete from search_texts t where id = any($1) and ${used.map((one) => `not exists (${one})`).join(' and ')}`,
    [texts],
  )
}

/**
 * Texts that a row refers to. Others are of pages that sessions have left: no search finds anything by them, and whether
 * one is there says nothing.
 */
export const isUsedText = (schema: string): string =>
  `t.id in (${references.map(([table, column]) => `select ${column} from ${schema}.${table} where ${column} is not null`).join(' union all ')})`
