import type { Tx } from '../../infra/postgres/pool.ts'
import type { SessionReassignment } from '../../projections/sessions/apply-reassignments.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { pauseScoring } from './erase.ts'
import { reassignmentRuleOf, reassignSessions, reassignStates } from './visitors/links.ts'

/**
 * Reassigns sessions to other visitors, for corrections. Corrections block scoring and write its tables directly: as
 * events that scoring consumes, they couldn't report the outcome, and two topics would need a common order.
 */
export const visitorLinks = {
  lockLinks: pauseScoring,

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
    await reassignSessions(tx, { sessionIds, from, to, rule: reassignmentRuleOf(first) })
    await reassignStates(tx, reassigned)
  },
}
