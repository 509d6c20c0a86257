import type { DecidedEvent, DecisionGuard } from '../../../infra/event-store/decide.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { sessionStream } from '../sessions.ts'
import { provideAccount, whileSession } from './account.ts'
import { type ApprovalDeps, overdueAt, stopRequest } from './account-request.ts'
import { makeCredentials } from './credentials.ts'
import { decideApproval, decideApprovalFailure, isStarted, type StartedSession } from './decide.ts'

/** Which approval, and what ends the work on it. */
export interface ApprovalWork {
  gateSessionId: GateSessionId
  signal: AbortSignal
}

/**
 * Gets the account's credentials from the service, or from this server for the built-in one, and approves or rejects
 * the session. Every step can be repeated; tokens and keys are then drawn anew, since those before reached nobody.
 * Rejects when a step fails for now, and when it is aborted.
 */
export async function concludeApproval(
  deps: ApprovalDeps,
  { gateSessionId, signal }: ApprovalWork,
): Promise<void> {
  const session = await findGateSession(deps.pool, gateSessionId)
  if (!isStarted(session)) return
  if (deps.clock() > overdueAt(session, deps.integratorTimeoutMs)) {
    // This comes first, because nobody comes back for the delivery of a session that has ended.
    await stopRequest(deps, session, overdue)
    return reject(deps, session, overdue)
  }
  const stillNeeded = whileSession(session, isStarted)
  const answer = await provideAccount(deps, { session, signal, stillNeeded })
  if (answer.kind === 'failed') return reject(deps, session, answer.problem)
  if (answer.kind === 'superseded') return
  const credentials = await makeCredentials(deps, session, answer.envelope)
  await end(deps, { session, isCurrent: answer.isCurrent }, (current) =>
    decideApproval(current, credentials),
  )
}

const overdue = 'The signup could not be finished in time.'

function reject(deps: ApprovalDeps, session: StartedSession, problem: string): Promise<void> {
  const now = deps.clock()
  return end(deps, { session }, (current) => decideApprovalFailure(current, { problem, now }))
}

// No event where another process has replaced what would be delivered: it goes on.
async function end(
  deps: ApprovalDeps,
  { session, isCurrent }: { session: StartedSession; isCurrent?: DecisionGuard | undefined },
  about: (session: GateSessionRow | undefined) => DecidedEvent[],
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
    decide: (state) => (state.isCurrent ? about(state.session) : []),
  })
  if (!event) return
  const outcome = event.type === 'GateSessionApproved' ? 'approved' : 'rejected'
  meter?.finished(outcome, clock() - since)
  logger.info({ gateSessionId, serviceId, outcome }, 'the approval of a signup has ended')
}
