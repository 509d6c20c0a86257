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
  signal: AbortSignal
}

/**
 * Gets the account from the service (or from this server for the built-in service) and approves or rejects the session.
 * Safe to repeat: new tokens and keys replace earlier ones, which were never delivered. The promise rejects if a step
 * failed and should be retried, or if aborted.
 */
export async function concludeApproval(
  deps: ApprovalDeps,
  { gateSessionId, signal }: ApprovalWork,
): Promise<void> {
  const session = await findGateSession(deps.pool, gateSessionId)
  if (!isStarted(session)) return
  if (deps.clock() > overdueAt(session, deps.integratorTimeoutMs)) {
    // Must precede the rejection: a crash in between would leave the delivery pending, because ended sessions are not
    // resumed.
    await abandonRequest(deps, session, overdue)
    return reject(deps, session, overdue)
  }
  const issueGuard = sessionGuard(session, isStarted)
  const account = await provideAccount(deps, { session, signal, issueGuard })
  if (account.kind === 'failed') return reject(deps, session, account.problem)
  if (account.kind === 'superseded') return
  const credentials = await issueCredentials(deps, session, account.envelope)
  await conclude(deps, { session, keysGuard: account.keysGuard }, (current) =>
    decideApproval(current, credentials),
  )
}

const overdue = 'The signup could not be finished in time.'

function reject(deps: ApprovalDeps, session: StartedSession, problem: string): Promise<void> {
  const now = deps.clock()
  return conclude(deps, { session }, (current) => decideApprovalFailure(current, { problem, now }))
}

// Does nothing if another process has replaced the keys: that process concludes the approval.
async function conclude(
  deps: ApprovalDeps,
  { session, keysGuard }: { session: StartedSession; keysGuard?: DecisionGuard | undefined },
  decision: (session: GateSessionRow | undefined) => DecidedEvent[],
): Promise<void> {
  const { clock, meter, logger, decideAs } = deps
  const { id: gateSessionId, service_id: serviceId, approval_started_at: startedAt } = session
  const stream = sessionStream(gateSessionId)
  const decide = decideAs({ type: 'service', id: 'gate' })
  const [event] = await decide({
    ...stream,
    locks: [...stream.locks, ...(keysGuard?.locks ?? [])],
    alsoReads: keysGuard?.alsoReads ?? [],
    load: async (tx) => ({
      session: await findGateSession(tx, gateSessionId),
      isCurrent: keysGuard === undefined || (await keysGuard.holds(tx)),
    }),
    decide: (state) => (state.isCurrent ? decision(state.session) : []),
  })
  if (!event) return
  const outcome = event.type === 'GateSessionApproved' ? 'approved' : 'rejected'
  meter?.onConcluded(outcome, clock() - startedAt)
  const fields = { gate_session_id: gateSessionId, service_id: serviceId, outcome }
  logger.info(fields, 'signup approval concluded')
}
