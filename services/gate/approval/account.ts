import { ApiError } from '../../../infra/errors/errors.ts'
import type { DecisionGuard } from '../../../infra/event-store/decide.ts'
import { sealEnvelope } from '../../../infra/wire/delivery-envelope.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { gateEventsOf, sessionStream } from '../sessions.ts'
import {
  type AccountRequest,
  type AccountResult,
  type ApprovalDeps,
  requestAccount,
} from './account-request.ts'
import { deliveryKeyOf, type StartedSession } from './decide.ts'

/** Returns a guard that holds while `condition` is true for the session. The guard takes the session's lock. */
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
 * `keysGuard`: fails once a retry has replaced the keys in the envelope; only for the built-in service. `superseded`:
 * another process has provided the account.
 */
type Account = (AccountResult & { keysGuard?: DecisionGuard }) | { kind: 'superseded' }

/** Requests the account from the service. For the built-in service, creates an organization if `issueGuard` holds. */
export async function provideAccount(
  deps: ApprovalDeps,
  { issueGuard, ...request }: AccountRequest & { issueGuard: DecisionGuard },
): Promise<Account> {
  const { id: gateSessionId, organization_id, account_name: accountName } = request.session
  const startedAt = request.session.approval_started_at
  if (organization_id !== null) return requestAccount(deps, request)
  try {
    const organization = await deps.signUpOrganization({
      gateSessionId,
      accountName,
      startedAt,
      issueGuard,
    })
    if (!organization) return { kind: 'superseded' }
    const { outputs, keysGuard } = organization
    const delivery = deliveryKeyOf(request.session)
    const envelope = sealEnvelope({ version: 1, outputs }, { delivery, random: deps.random })
    return { kind: 'provided', envelope, keysGuard }
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error
    return { kind: 'failed', problem: `The organization could not be created: ${error.message}` }
  }
}
