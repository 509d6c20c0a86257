import type { Tx } from '../../infra/postgres/pool.ts'
import type { VisitorErased } from '../../schemas/events.ts'
import { openSessionsOf, type VisitorIdentifiers } from './open-sessions.ts'
import { deleteVisitors, rebuildFromLinks } from './visitors/links.ts'

/** Deletes what scoring stores about erased sessions, and rebuilds their visitors from the sessions that are left. */
export async function eraseStates(tx: Tx, erased: VisitorErased[]): Promise<void> {
  await pauseScoring(tx)
  const sessionIds = erased.flatMap(({ session_ids }) => session_ids)
  const { rows } = await tx.query<{ visitor_id: string }>(
    'delete from scoring.links where session_id = any($1) returning visitor_id',
    [sessionIds],
  )
  const linkedIds = rows.map(({ visitor_id }) => visitor_id)
  const ids = erased.flatMap((event) => [...event.erased_visitor_ids, ...event.changed_visitor_ids])
  await rebuildFromLinks(tx, [...new Set([...linkedIds, ...ids])])
  // Also delete lookups of their addresses. Other sessions from such an address trigger a new lookup.
  await tx.query(
    `with gone as (delete from scoring.sessions where session_id = any($1) returning state::json->>'ip_address' as ip)
     delete from scoring.agent_lookups where subject in (select ip from gone)`,
    [sessionIds],
  )
  await tx.query('delete from scoring.attested_devices where session_id = any($1)', [sessionIds])
}

/**
 * Deletes the visitors before their sessions are erased, so that no further session is linked to them. Returns the ids
 * of open sessions that present one of their ids but have no decision yet.
 */
export async function stopLinking(tx: Tx, visitors: VisitorIdentifiers): Promise<string[]> {
  await pauseScoring(tx)
  const sessionIds = await openSessionsOf(tx, visitors)
  await deleteVisitors(tx, visitors.visitorIds)
  return sessionIds
}

/** Blocks scoring until the transaction ends: each scoring transaction first locks rows of this table. */
export async function pauseScoring(tx: Tx): Promise<void> {
  await tx.query('lock table scoring.offsets in exclusive mode')
}
