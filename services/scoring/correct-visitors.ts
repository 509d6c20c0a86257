import type { Tx } from '../../infra/postgres/pool.ts'
import type { SessionReassignment } from '../../projections/sessions/apply-reassignments.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { stopScoring } from './erase.ts'
import { reassignSessions, reassignStates, ruleOf } from './visitors/links.ts'

/**
 * The visitors of sessions, for corrections. These stop scoring for as long as they reassign sessions, because a consumer
 * of corrections could not answer what became of one, and would need an order between two topics.
 */
export const linkedVisitors = {
  hold: stopScoring,

  async sessionsOf(
    tx: Tx,
    { scope, visitorId, limit }: { scope: DataScope; visitorId: string; limit?: number },
  ): Promise<string[]> {
    const { rows } = await tx.query<{ session_id: string }>(
      `select session_id from scoring.links
       where visitor_id = $1 and organization_id = $2 and environment = $3 order by session_id limit $4`,
      [visitorId, scope.organizationId, scope.environment, limit ?? null],
    )
    return rows.map(({ session_id }) => session_id)
  },

  async reassign(tx: Tx, reassigned: SessionReassignment[]): Promise<void> {
    const [first] = reassigned
    if (!first) return
    const { earlier_visitor_id: from, visitor_id: to } = first
    const sessionIds = reassigned.map(({ session_id }) => session_id)
    await reassignSessions(tx, { sessionIds, from, to, rule: ruleOf(first) })
    await reassignStates(tx, reassigned)
  },
}
