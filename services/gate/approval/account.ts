import { ApiError } from '../../../infra/errors/errors.ts'
import type { DecisionGuard } from '../../../infra/event-store/decide.ts'
import { sealEnvelope } from '../../../infra/wire/delivery-envelope.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { gateEventsOf, sessionStream } from '../sessions.ts'
import {
  type AccountAnswer,
  type AccountRequest,
  type ApprovalDeps,
  requestAccount,
} from './account-request.ts'
import { deliveryKeyOf, type StartedSession } from './decide.ts'

/** Returns a guard that holds while `condition` is true of the session. Takes the lock of the session's decisions. */
export function sessionGuard(
  { id }: StartedSession,
  condition: (session: GateSessionRow | undefined) => boolean,
): DecisionGuard {
  const { locks } = sessionStream(id)
  return {
    locks,
    alsoReads: [gateEventsOf(id)],
    holds: async (tx) => condition(await findGateSession(tx, id)),
  }
}

/**
 * `isCurrent`: guard that the envelope's keys still work, for the built-in service only. superseded: another process
 * provided the account.
 */
type Account = (AccountAnswer & { isCurrent?: DecisionGuard }) | { kind: 'superseded' }

/**
 * Gets the account from the service, or creates it on this server for the built-in service while `stillNeeded` holds.
 */
export async function provideAccount(
  deps: ApprovalDeps,
  { stillNeeded, ...request }: AccountRequest & { stillNeeded: DecisionGuard },
): Promise<Account> {
  const { id: gateSessionId, organization_id, account_name: accountName } = request.session
  const startedAt = request.session.approval_started_at
  if (organization_id !== null) return requestAccount(deps, request)
  try {
    const organization = await deps.signUpOrganization({
      gateSessionId,
      accountName,
      startedAt,
      stillNeeded,
    })
    if (!organization) return { kind: 'superseded' }
    const { outputs, isCurrent } = organization
    const delivery = deliveryKeyOf(request.session)
    const envelope = sealEnvelope({ version: 1, outputs }, { delivery, random: deps.random })
    return { kind: 'answered', envelope, isCurrent }
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error
    return { kind: 'failed', problem: `The organization could not be made: ${error.message}` }
  }
}
