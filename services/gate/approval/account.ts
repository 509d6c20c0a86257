import { ApiError } from '../../../infra/errors/errors.ts'
import type { DomainEvent } from '../../../infra/event-store/codec.ts'
import type { DecidedEvent, DecisionGuard } from '../../../infra/event-store/decide.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import { type DeliveryEnvelope, sealEnvelope } from '../../../infra/wire/delivery-envelope.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateParts } from '../context.ts'
import { seenOf, sessionStream } from '../sessions.ts'
import {
  type AccountAnswer,
  type AccountRequest,
  type AccountRequestDeps,
  requestAccount,
} from './account-request.ts'
import { deliveryKeyOf, type StartedSession } from './decide.ts'

type AccountDeps = AccountRequestDeps & Pick<GateParts, 'signUpOrganization' | 'random'>

/** Under the lock of the session's own decisions. */
export function stillThat(
  { id }: StartedSession,
  isSo: (session: GateSessionRow | undefined) => boolean,
): DecisionGuard {
  const { locks } = sessionStream(id)
  return { locks, alsoReads: [seenOf(id)], holds: async (tx) => isSo(await findGateSession(tx, id)) }
}

type AskedAccount = Exclude<AccountAnswer, { kind: 'answered' }> | BuiltInAnswer

type BuiltInAnswer =
  /** `isCurrent`: what the envelope has works. Of the built-in service alone: others promise it. */
  { kind: 'answered'; envelope: DeliveryEnvelope; isCurrent?: DecisionGuard } | { kind: 'unwanted' }

interface AskForAccount extends AccountRequest {
  isWanted: DecisionGuard
}

/** From the service, or from this server for the built-in one. */
export function askForAccount(
  deps: AccountDeps,
  { isWanted, ...request }: AskForAccount,
): Promise<AskedAccount> {
  const { session } = request
  return session.organization_id === null
    ? signUpHere(deps, { session, isWanted })
    : requestAccount(deps, request)
}

async function signUpHere(
  deps: AccountDeps,
  { session, isWanted }: Pick<AskForAccount, 'session' | 'isWanted'>,
): Promise<AskedAccount> {
  const { id: gateSessionId, account_name: accountName, approval_started_at: startedAt } = session
  try {
    const made = await deps.signUpOrganization({ gateSessionId, accountName, startedAt, isWanted })
    if (!made) return { kind: 'unwanted' }
    const { outputs, isCurrent } = made
    const delivery = deliveryKeyOf(session)
    const envelope = sealEnvelope({ version: 1, outputs }, { delivery, random: deps.random })
    return { kind: 'answered', envelope, isCurrent }
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error
    return { kind: 'failed', problem: `The organization could not be made: ${error.message}` }
  }
}

interface WhileCurrent {
  gateSessionId: GateSessionId
  isCurrent: DecisionGuard | undefined
  about: (session: GateSessionRow | undefined) => DecidedEvent[]
}

/** No event where another process has replaced what would be delivered: it goes on. */
export async function decideWhileCurrent(
  { decideAs }: Pick<GateParts, 'decideAs'>,
  { gateSessionId, isCurrent, about }: WhileCurrent,
): Promise<DomainEvent | undefined> {
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
  return event
}
