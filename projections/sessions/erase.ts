import { webhookEventId } from '../../infra/ids.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import type { VisitorErased } from '../../schemas/events.ts'
import { rebuildVisitor } from './apply-reassignments.ts'
import { requestTexts } from './apply-visitors.ts'
import { deleteRollUps, type TimedSession, timedSessionSql } from './hours.ts'
import { readEvent } from './stored-event.ts'
import { sessionEventTypes } from './tables.ts'

/** Deletes the rows of erased sessions, and rebuilds their visitors from the remaining sessions. */
export async function eraseSessions(tx: Tx, erased: VisitorErased[]): Promise<void> {
  for (const { organization_id, environment, ...erasure } of erased) {
    const { visitors, texts } = await deleteSessions(tx, erasure)
    await tx.query(
      `delete from visitor_sessions
       where organization_id = $1 and environment = $2 and visitor_id = any($3) and session_id = any($4)`,
      [organization_id, environment, visitors, erasure.session_ids],
    )
    for (const visitor_id of visitors)
      await rebuildVisitor(tx, { organization_id, environment, visitor_id })
    await deleteUnusedTexts(tx, texts)
  }
}

/** Returns the ids of the sessions' webhook events, except those of reassignments. */
export const webhookEventIds = (sessionIds: string[]): string[] =>
  sessionIds.flatMap((id) => sessionEventTypes.map((type) => webhookEventId(type, id)))

// Returns the ids of the sessions' visitors and search texts.
async function deleteSessions(
  tx: Tx,
  erasure: Pick<VisitorErased, 'session_ids' | 'erased_visitor_ids' | 'changed_visitor_ids'>,
): Promise<{ visitors: string[]; texts: Buffer[] }> {
  const sessionIds = erasure.session_ids
  const decisions = await tx.query<{ event: Buffer; visitor_id: string | null }>(
    `with gone as (delete from decisions where session_id = any($1) returning event_id, event, visitor_id),
      events as (delete from session_events
        where decision_id in (select event_id from gone) or session_id = any($1) or event_id = any($2))
     select event, visitor_id from gone`,
    [sessionIds, webhookEventIds(sessionIds)],
  )
  const sessions = await tx.query<TimedSession>(
    `delete from sessions s where session_id = any($1) returning ${timedSessionSql('s')}`,
    [sessionIds],
  )
  await deleteRollUps(tx, sessions.rows)
  await tx.query('delete from session_marks where session_id = any($1)', [sessionIds])
  const changes = await tx.query<{ user_text: Buffer | null }>(
    'delete from client_user_changes where session_id = any($1) returning user_text',
    [sessionIds],
  )
  const texts = decisions.rows.flatMap(({ event }) => Object.values(requestTexts(readEvent(event))))
  const { erased_visitor_ids, changed_visitor_ids } = erasure
  const decided = decisions.rows.flatMap(({ visitor_id }) => visitor_id ?? [])
  return {
    // Retention may have deleted the decisions already, so visitors named in the event are included.
    visitors: [...new Set([...decided, ...erased_visitor_ids, ...changed_visitor_ids])],
    texts: [
      ...texts.map(({ id }) => id),
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
  const uses = references.map(([table, column]) => `select from ${table} where ${column} = t.id`)
  await tx.query(
    `delete from search_texts t where id = any($1) and ${uses.map((use) => `not exists (${use})`).join(' and ')}`,
    [texts],
  )
}

/** Returns SQL that is true if any row refers to the search text `t`. */
export const isReferencedSql = (schema: string): string =>
  `t.id in (${references.map(([table, column]) => `select ${column} from ${schema}.${table} where ${column} is not null`).join(' union all ')})`
