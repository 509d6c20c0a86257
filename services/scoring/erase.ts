import type { Tx } from '../../infra/postgres/pool.ts'
import type { VisitorErased } from '../../schemas/events.ts'
import { type KnownBy, openSessionsOf } from './open-sessions.ts'
import { forgetVisitors, remakeFromLinks } from './visitors/links.ts'

/** Deletes what scoring knows of erased sessions. Visitors with other sessions are made anew of those. */
export async function eraseStates(tx: Tx, erased: VisitorErased[]): Promise<void> {
  await stopScoring(tx)
  const sessionIds = erased.flatMap(({ session_ids }) => session_ids)
  const { rows } = await tx.query<{ visitor_id: string }>(
    'delete from scoring.links where session_id = any($1) returning visitor_id',
    [sessionIds],
  )
  const named = erased.flatMap((one) => [...one.erased_visitor_ids, ...one.changed_visitor_ids])
  await remakeFromLinks(tx, [...new Set([...rows.map(({ visitor_id }) => visitor_id), ...named])])
  // Look-ups of their addresses go with them. Other sessions of an address cause another look-up.
  await tx.query(
    `with gone as (delete from scoring.sessions where session_id = any($1) returning state::json->>'ip_address' as ip)
     delete from scoring.agent_lookups where subject in (select ip from gone)`,
    [sessionIds],
  )
  await tx.query('delete from scoring.attested_devices where session_id = any($1)', [sessionIds])
}

/**
 * Before the visitors' sessions are erased: from here on no session is linked to them. Returns ids of sessions that are
 * theirs already, and have no decision that says so.
 */
export async function hideVisitors(tx: Tx, known: KnownBy): Promise<string[]> {
  await stopScoring(tx)
  const open = await openSessionsOf(tx, known)
  await forgetVisitors(tx, known.visitorIds)
  return open
}

/** Scoring locks a row of the table first, so it waits until the transaction ends. */
export async function stopScoring(tx: Tx): Promise<void> {
  await tx.query('lock table scoring.offsets in exclusive mode')
}
