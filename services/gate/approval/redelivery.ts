import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { findBundle } from '../vault.ts'
import { decideWhileCurrent, provideAccount, whileSession } from './account.ts'
import { type ApprovalDeps, lostAnswerMs } from './account-request.ts'
import type { ApprovalWork } from './conclude.ts'
import { makeCredentials } from './credentials.ts'
import { decideDeliveryReplacement, isDelivering } from './decide-redelivery.ts'

/**
 * Gets the credentials of an approved signup again where Postgres has lost the key of those before, as by a crash. Does
 * nothing where they can be opened or do not wait any more. Goes on for a quarter of an hour where the service
 * does not answer. Rejects when a step fails for now, and when it is aborted.
 */
export async function replaceDelivery(
  deps: ApprovalDeps,
  { gateSessionId, signal }: ApprovalWork,
): Promise<void> {
  const { pool, vault, clock, logger } = deps
  const session = await findGateSession(pool, gateSessionId)
  if (!isDelivering(session, clock()) || (await findBundle(vault, session))) return
  const { delivery_sealed: lost, delivery_expires_at: endsAt, service_id: serviceId } = session
  const isLost = (now: GateSessionRow | undefined) => now?.delivery_sealed?.equals(lost) === true
  const again = { until: Math.min(endsAt, clock() + lostAnswerMs) }
  const answer = await provideAccount(deps, {
    session,
    signal,
    again,
    stillNeeded: whileSession(session, isLost),
  })
  if (answer.kind === 'failed')
    return logger.warn(
      { gateSessionId, serviceId, problem: answer.problem },
      'credentials stay lost',
    )
  if (answer.kind === 'superseded') return
  const credentials = await makeCredentials(deps, session, answer.envelope)
  const event = await decideWhileCurrent(
    deps,
    { gateSessionId, isCurrent: answer.isCurrent },
    (current) => decideDeliveryReplacement(current, { lost, credentials }),
  )
  if (event) logger.info({ gateSessionId, serviceId }, 'lost credentials were given out again')
}
