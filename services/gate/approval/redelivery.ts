import type { GateSessionId } from '../../../infra/ids.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { findBundle } from '../vault.ts'
import { askForAccount, decideWhileCurrent, stillThat } from './account.ts'
import { lostAnswerMs } from './account-request.ts'
import type { ConcludeDeps } from './conclude.ts'
import { makeCredentials } from './credentials.ts'
import { decideDeliveryReplacement, isDelivering } from './decide-redelivery.ts'

interface Redelivery {
  gateSessionId: GateSessionId
  signal: AbortSignal
}

/**
 * Gets the credentials of an approved signup again where Postgres has lost the key of those before, as by a crash. Does
 * nothing where they can be opened or do not wait any more. A service that does not answer is asked for a quarter of an
 * hour. Rejects when a step fails for now, and when it is aborted.
 */
export async function replaceDelivery(
  deps: ConcludeDeps,
  { gateSessionId, signal }: Redelivery,
): Promise<void> {
  const { pool, vault, clock, logger } = deps
  const session = await findGateSession(pool, gateSessionId)
  if (!isDelivering(session, clock()) || (await findBundle(vault, session))) return
  const { delivery_sealed: lost, delivery_expires_at: endsAt, service_id: serviceId } = session
  const isLost = (now: GateSessionRow | undefined) => now?.delivery_sealed?.equals(lost) === true
  const again = { until: Math.min(endsAt, clock() + lostAnswerMs) }
  const isWanted = stillThat(session, isLost)
  const answer = await askForAccount(deps, { session, signal, again, isWanted })
  if (answer.kind === 'failed')
    return logger.warn({ gateSessionId, serviceId, problem: answer.problem }, 'credentials stay lost')
  if (answer.kind === 'unwanted') return
  const credentials = await makeCredentials(deps, { session, integrator: answer.envelope })
  const about = (current: GateSessionRow | undefined) =>
    decideDeliveryReplacement(current, { lost, credentials })
  const event = await decideWhileCurrent(deps, { gateSessionId, isCurrent: answer.isCurrent, about })
  if (event) logger.info({ gateSessionId, serviceId }, 'lost credentials were given out again')
}
