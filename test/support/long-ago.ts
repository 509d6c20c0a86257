import { expect } from 'vitest'
import type { Db } from '../../infra/postgres/pool.ts'
import { eventually } from './eventually.ts'

const days = 2

/**
 * Moves the visitor links of these sessions two days back, because fingerprints alone do not match recently seen
 * visitors. Returns a function that undoes it.
 */
export async function longAgo(db: Db, sessionIds: string[]): Promise<() => Promise<void>> {
  await eventually(async () => {
    const { rows } = await db.query(
      'select session_id from scoring.links where session_id = any($1)',
      [sessionIds],
    )
    expect(rows).toHaveLength(sessionIds.length)
  })
  await shift(db, sessionIds, -days)
  return () => shift(db, sessionIds, days)
}

async function shift(db: Db, sessionIds: string[], by: number): Promise<void> {
  await db.query('update scoring.links set linked_at = linked_at + $2 where session_id = any($1)', [
    sessionIds,
    by * 24 * 60 * 60 * 1000,
  ])
  await db.query(
    `update scoring.visitors v set first_seen_at = seen.first, last_seen_at = seen.last from (
       select visitor_id, min(linked_at) as first, max(linked_at) as last from scoring.links group by visitor_id
     ) seen where seen.visitor_id = v.visitor_id`,
  )
}
