import type { DecidedEvent, DecisionGuard } from '../../../infra/event-store/decide.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { sessionStream } from '../sessions.ts'
import { provideAccount, sessionGuard } from './account.ts'
import { type ApprovalDeps, abandonRequest, overdueAt } from './account-request.ts'
import { issueCredentials } from './credentials.ts'
import { decideApproval, decideApprovalFailure, isStarted, type StartedSession } from './decide.ts'

export interface ApprovalWork {
  gateSessionId: GateSessionId
  /** Aborts the work. */
  signal: AbortSignal
}

/**
 * Gets the credentials from the service, or from this server for the built-in one, and approves or rejects the session.
 * Every step can be repeated with new tokens and keys, since earlier ones reached nobody. Rejects when a step should be
 * retried, and when aborted.
 */
export async function concludeApproval(
  deps: ApprovalDeps,
  { gateSessionId, signal }: ApprovalWork,
): Promise<void> {
  const session = await findGateSession(deps.pool, gateSessionId)
  if (!isStarted(session)) return
  if (deps.clock() > overdueAt(session, deps.integratorTimeoutMs)) {
    // Before the rejection, because nothing would resume a session that has ended.
    await abandonRequest(deps, session, overdue)
    return reject(deps, session, overdue)
  }
  const stillNeeded = sessionGuard(session, isStarted)
  const answer = await provideAccount(deps, { session, signal, stillNeeded })
  if (answer.kind === 'failed') return reject(deps, session, answer.problem)
  if (answer.kind === 'superseded') return
  const credentials = await issueCredentials(deps, session, answer.envelope)
  await conclude(deps, { session, isCurrent: answer.isCurrent }, (current) =>
    decideApproval(current, credentials),
  )
}

const overdue = 'The signup could not be finished in time.'

function reject(deps: ApprovalDeps, session: StartedSession, problem: string): Promise<void> {
  const now = deps.clock()
  return conclude(deps, { session }, (current) => decideApprovalFailure(current, { problem, now }))
}

// Makes no event if another process has replaced the credentials; that process concludes the approval.
async function conclude(
  deps: ApprovalDeps,
  { session, isCurrent }: { session: StartedSession; isCurrent?: DecisionGuard | undefined },
  decision: (session: GateSessionRow | undefined) => DecidedEvent[],
): Promise<void> {
  const { clock, meter, logger, decideAs } = deps
  const { id: gateSessionId, service_id: serviceId, approval_started_at: since } = session
  const stream = sessionStream(gateSessionId)
  const decide = decideAs({ type: 'service', id: 'gate' })
  const [event] = await decide({
    ...stream,
    locks: [...stream.locks, ...(isCurrent?.locks ?? [])],
    alsoReads: isCurrent?.alsoReads ?? [],
    load: async (tx) => ({
      session: await findGateSession(tx, gateSessionId),
      isCurrent: isCurrent === undefined || (await isCurrent.holds(tx)),
    }),
    decide: (state) => (state.isCurrent ? decision(state.session) : []),
  })
  if (!event) return
  const outcome = event.type === 'GateSessionApproved' ? 'approved' : 'rejected'
  meter?.finished(outcome, clock() - since)
  logger.info({ gateSessionId, serviceId, outcome }, 'signup approval concluded')
}
