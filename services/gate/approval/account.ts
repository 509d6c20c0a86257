import { ApiError } from '../../../infra/errors/errors.ts'
import type { DecisionGuard } from '../../../infra/event-store/decide.ts'
import { sealEnvelope } from '../../../infra/wire/delivery-envelope.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { seenOf, sessionStream } from '../sessions.ts'
import {
  type AccountAnswer,
  type AccountRequest,
  type ApprovalDeps,
  requestAccount,
} from './account-request.ts'
import { deliveryKeyOf, type StartedSession } from './decide.ts'

/** Under the lock of the session's own decisions. */
export function whileSession(
  { id }: StartedSession,
  isSo: (session: GateSessionRow | undefined) => boolean,
): DecisionGuard {
  const { locks } = sessionStream(id)
  return {
    locks,
    alsoReads: [seenOf(id)],
    holds: async (tx) => isSo(await findGateSession(tx, id)),
  }
}

/**
 * `isCurrent`: that what the envelope has works. Only the built-in service can say so; others promise it. superseded: the
 * account is not needed any more.
 */
type Account = (AccountAnswer & { isCurrent?: DecisionGuard }) | { kind: 'superseded' }

/** From the service, or from this server for the built-in one, while that is `stillNeeded`. */
export async function provideAccount(
  deps: ApprovalDeps,
  { stillNeeded, ...request }: AccountRequest & { stillNeeded: DecisionGuard },
): Promise<Account> {
  const { id: gateSessionId, organization_id, account_name: accountName } = request.session
  const startedAt = request.session.approval_started_at
  if (organization_id !== null) return requestAccount(deps, request)
  try {
    const made = await deps.signUpOrganization({
      gateSessionId,
      accountName,
      startedAt,
      stillNeeded,
    })
    if (!made) return { kind: 'superseded' }
    const { outputs, isCurrent } = made
    const delivery = deliveryKeyOf(request.session)
    const envelope = sealEnvelope({ version: 1, outputs }, { delivery, random: deps.random })
    return { kind: 'answered', envelope, isCurrent }
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error
    return { kind: 'failed', problem: `The organization could not be made: ${error.message}` }
  }
}
