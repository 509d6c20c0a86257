import type { Tx } from '../../infra/postgres/pool.ts'
import type { VisitorErased } from '../../schemas/events.ts'
import { undecidedSessionsOf, type VisitorIdentifiers } from './open-sessions.ts'
import { deleteVisitors, rebuildFromLinks } from './visitors/links.ts'

/** Deletes what scoring stores about erased sessions, and rebuilds their visitors from the sessions that are left. */
export async function eraseScoringData(tx: Tx, erased: VisitorErased[]): Promise<void> {
  await pauseScoring(tx)
  const sessionIds = erased.flatMap(({ session_ids }) => session_ids)
  const { rows } = await tx.query<{ visitor_id: string }>(
    'delete from scoring.links where session_id = any($1) returning visitor_id',
    [sessionIds],
  )
  const linkedIds = rows.map(({ visitor_id }) => visitor_id)
  const ids = erased.flatMap((event) => [...event.erased_visitor_ids, ...event.changed_visitor_ids])
  await rebuildFromLinks(tx, [...new Set([...linkedIds, ...ids])])
  // Also delete lookups of the sessions' addresses. Later sessions from such an address trigger a new lookup.
  await tx.query(
    `with gone as (delete from scoring.sessions where session_id = any($1) returning state::json->>'ip_address' as ip)
     delete from scoring.agent_lookups where subject in (select ip from gone)`,
    [sessionIds],
  )
  await tx.query('delete from scoring.attested_devices where session_id = any($1)', [sessionIds])
}

/**
 * Deletes the visitors before their sessions are erased, so that no further session is linked to them. Returns the open
 * sessions without a decision that present one of the visitors' ids.
 */
export async function stopLinking(tx: Tx, visitors: VisitorIdentifiers): Promise<string[]> {
  await pauseScoring(tx)
  const sessionIds = await undecidedSessionsOf(tx, visitors)
  await deleteVisitors(tx, visitors.visitorIds)
  return sessionIds
}

/** Blocks scoring until the transaction ends: each scoring transaction starts by locking rows of `scoring.offsets`. */
export async function pauseScoring(tx: Tx): Promise<void> {
  await tx.query('lock table scoring.offsets in exclusive mode')
}
