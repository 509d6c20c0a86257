import { webhookEventId } from '../../infra/ids.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import type { VisitorErased } from '../../schemas/events.ts'
import { remakeVisitor } from './apply-reassignments.ts'
import { requestTexts } from './apply-visitors.ts'
import { changedSession, deleteHoursOfRows, type TimedSession } from './hours.ts'
import { readEvent } from './stored-event.ts'
import { sessionEventTypes } from './tables.ts'

/** Deletes the rows of erased sessions. A visitor with other sessions is made anew of those. */
export async function eraseSessions(tx: Tx, erased: VisitorErased[]): Promise<void> {
  for (const { organization_id, environment, ...named } of erased) {
    const { visitors, texts } = await deleteSessions(tx, named)
    await tx.query(
      `delete from visitor_sessions
       where organization_id = $1 and environment = $2 and visitor_id = any($3) and session_id = any($4)`,
      [organization_id, environment, visitors, named.session_ids],
    )
    for (const visitor_id of visitors)
      await remakeVisitor(tx, { organization_id, environment, visitor_id })
    await deleteUnusedTexts(tx, texts)
  }
}

/** The ids of the webhook events of these sessions, but for those of a later visitor. */
export const webhookEventIds = (sessionIds: string[]): string[] =>
  sessionIds.flatMap((id) => sessionEventTypes.map((type) => webhookEventId(type, id)))

// Returns the visitors of the sessions, and ids of texts by which searches found them.
async function deleteSessions(
  tx: Tx,
  named: Pick<VisitorErased, 'session_ids' | 'erased_visitor_ids' | 'changed_visitor_ids'>,
): Promise<{ visitors: string[]; texts: Buffer[] }> {
  const sessionIds = named.session_ids
  const decisions = await tx.query<{ event: Buffer; visitor_id: string | null }>(
    `with gone as (delete from decisions where session_id = any($1) returning event_id, event, visitor_id),
      events as (delete from session_events
        where decision_id in (select event_id from gone) or session_id = any($1) or event_id = any($2))
     select event, visitor_id from gone`,
    [sessionIds, webhookEventIds(sessionIds)],
  )
  const sessions = await tx.query<TimedSession>(
    `delete from sessions s where session_id = any($1) returning ${changedSession('s')}`,
    [sessionIds],
  )
  await deleteHoursOfRows(tx, sessions.rows)
  await tx.query('delete from session_marks where session_id = any($1)', [sessionIds])
  const changes = await tx.query<{ user_text: Buffer | null }>(
    'delete from client_user_changes where session_id = any($1) returning user_text',
    [sessionIds],
  )
  const ofRequests = decisions.rows.flatMap(({ event }) =>
    Object.values(requestTexts(readEvent(event))),
  )
  const found = decisions.rows.flatMap(({ visitor_id }) => visitor_id ?? [])
  return {
    // Retention may have deleted the decisions before.
    visitors: [...new Set([...found, ...named.erased_visitor_ids, ...named.changed_visitor_ids])],
    texts: [
      ...ofRequests.map(({ id }) => id),
      ...changes.rows.flatMap(({ user_text }) => user_text ?? []),
    ],
  }
}

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

/** SQL: a row refers to the text `t`. Others are of pages that sessions have left, and no search finds anything by them. */
export const isUsedText = (schema: string): string =>
  `t.id in (${references.map(([table, column]) => `select ${column} from ${schema}.${table} where ${column} is not null`).join(' union all ')})`
