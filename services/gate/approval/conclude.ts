import type { DecidedEvent, DecisionGuard } from '../../../infra/event-store/decide.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateParts } from '../context.ts'
import { askForAccount, decideWhileCurrent, stillThat } from './account.ts'
import { overdueAt, type Sleep, stopRequest } from './account-request.ts'
import { makeCredentials } from './credentials.ts'
import { decideApproval, decideApprovalFailure, isStarted, type StartedSession } from './decide.ts'

export type ConcludeDeps = Omit<GateParts, 'approvals'> & { sleep: Sleep }

interface Conclusion {
  gateSessionId: GateSessionId
  signal: AbortSignal
}

/**
 * Gets the account's credentials from the service, or from this server for the built-in one, and approves or rejects
 * the session. Every step can be repeated; tokens and keys are then drawn anew, since those before reached nobody.
 * Rejects when a step fails for now, and when it is aborted.
 */
export async function concludeApproval(
  deps: ConcludeDeps,
  { gateSessionId, signal }: Conclusion,
): Promise<void> {
  const { pool, clock, integratorTimeoutMs } = deps
  const session = await findGateSession(pool, gateSessionId)
  if (!isStarted(session)) return
  if (clock() > overdueAt(session, integratorTimeoutMs)) {
    // First: once the session has ended nobody comes back for its delivery.
    await stopRequest(deps, session, overdue)
    return reject(deps, session, overdue)
  }
  const isWanted = stillThat(session, isStarted)
  const answer = await askForAccount(deps, { session, signal, isWanted })
  if (answer.kind === 'failed') return reject(deps, session, answer.problem)
  if (answer.kind === 'unwanted') return
  const credentials = await makeCredentials(deps, { session, integrator: answer.envelope })
  const { isCurrent } = answer
  await decideAbout(deps, { session, isCurrent }, (current) => decideApproval(current, credentials))
}

const overdue = 'The signup could not be finished in time.'

function reject(deps: ConcludeDeps, session: StartedSession, problem: string): Promise<void> {
  const now = deps.clock()
  return decideAbout(deps, { session }, (current) => decideApprovalFailure(current, { problem, now }))
}

interface Ending {
  session: StartedSession
  isCurrent?: DecisionGuard | undefined
}

async function decideAbout(
  deps: ConcludeDeps,
  { session, isCurrent }: Ending,
  about: (session: GateSessionRow | undefined) => DecidedEvent[],
): Promise<void> {
  const { clock, meter, logger } = deps
  const { id: gateSessionId, service_id: serviceId, approval_started_at: since } = session
  const event = await decideWhileCurrent(deps, { gateSessionId, isCurrent, about })
  if (!event) return
  const outcome = event.type === 'GateSessionApproved' ? 'approved' : 'rejected'
  meter?.finished(outcome, clock() - since)
  logger.info({ gateSessionId, serviceId, outcome }, 'the approval of a signup has ended')
}
