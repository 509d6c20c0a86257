import type { Keyring } from '../../../infra/crypto/keyring.ts'
import type { DataKey } from '../../../infra/crypto/sealing.ts'
import { generateToken, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { GateSessionId, Random } from '../../../infra/ids.ts'
import { type DeliveryEnvelope, sealEnvelope } from '../../../infra/wire/delivery-envelope.ts'
import { agentTokenEnvName } from '../../../infra/wire/gate.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateParts } from '../context.ts'
import { type RegisteredService, serviceOf } from '../registry/registered.ts'
import { agentTokenTtlMs, deliveryTtlMs, sessionStream } from '../sessions.ts'
import { sealBundle } from '../store.ts'
import { type AccountAnswer, overdueAt, requestAccount, type Sleep, stopRequest } from './account-request.ts'
import {
  decideApproval,
  decideApprovalFailure,
  deliveryKeyOf,
  isStarted,
  type SignupCredentials,
  type StartedSession,
} from './decide.ts'

export type ConcludeDeps = Omit<GateParts, 'approvals'> & { sleep: Sleep }

interface Conclusion {
  gateSessionId: GateSessionId
  signal: AbortSignal
}

/**
 * Gets the account's credentials from the service, or from this server for the built-in one, and approves or rejects
 * the session. Every step can be repeated and makes the same tokens and keys again. Rejects when a step fails for
 * now, and when it is aborted.
 */
export async function concludeApproval(
  deps: ConcludeDeps,
  { gateSessionId, signal }: Conclusion,
): Promise<void> {
  const { pool, clock, vault, integratorTimeoutMs } = deps
  const session = await findGateSession(pool, gateSessionId)
  if (!isStarted(session)) return
  if (clock() > overdueAt(session, integratorTimeoutMs)) {
    // First: once the session has ended nobody comes back for its delivery.
    await stopRequest(deps, session, overdue)
    return reject(deps, session, overdue)
  }
  // Before anything is asked for: without it nothing could be delivered.
  const dataKey = await vault.make(gateSessionId)
  const answer = await (session.organization_id === null
    ? signUpHere(deps, { session, dataKey })
    : requestAccount(deps, { session, signal }))
  if (answer.kind === 'failed') return reject(deps, session, answer.problem)
  await approveWith(deps, { session, dataKey, integrator: answer.envelope })
}

const overdue = 'The signup could not be finished in time.'

interface Started {
  session: StartedSession
  dataKey: DataKey
}

async function signUpHere(deps: ConcludeDeps, { session, dataKey }: Started): Promise<AccountAnswer> {
  const { id: gateSessionId, account_name: accountName, approval_started_at: now } = session
  try {
    const random = dataKey.random('organization')
    const outputs = await deps.signUpOrganization({ gateSessionId, accountName, random, now })
    const delivery = deliveryKeyOf(session)
    return {
      kind: 'answered',
      envelope: sealEnvelope({ version: 1, outputs }, { delivery, random: deps.random }),
    }
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error
    return { kind: 'failed', problem: `The organization could not be made: ${error.message}` }
  }
}

async function approveWith(
  deps: ConcludeDeps,
  { session, ...made }: Started & { integrator: Parameters<typeof makeCredentials>[0]['integrator'] },
): Promise<void> {
  const { pool, publicUrl, keyring, random, clock } = deps
  const service = await serviceOf(pool, { serviceId: session.service_id, publicUrl })
  const credentials = makeCredentials({ session, service, ...made, keyring, random, now: clock() })
  await decideAbout(deps, session, (current) => decideApproval(current, credentials))
}

function reject(deps: ConcludeDeps, session: StartedSession, problem: string): Promise<void> {
  const now = deps.clock()
  return decideAbout(deps, session, (current) => decideApprovalFailure(current, { problem, now }))
}

async function decideAbout(
  { decide, clock, meter, logger }: ConcludeDeps,
  { id: gateSessionId, service_id: serviceId, approval_started_at: since }: StartedSession,
  about: (session: GateSessionRow | undefined) => DecidedEvent[],
): Promise<void> {
  const [event] = await decide({
    ...sessionStream(gateSessionId),
    load: (tx) => findGateSession(tx, gateSessionId),
    decide: about,
  })
  if (!event) return
  const outcome = event.type === 'GateSessionApproved' ? 'approved' : 'rejected'
  meter?.finished(outcome, clock() - since)
  logger.info({ gateSessionId, serviceId, outcome }, 'the approval of a signup has ended')
}

interface CredentialsOptions {
  session: StartedSession
  service: RegisteredService
  integrator: DeliveryEnvelope
  /** What is drawn from it is the same whenever the step is repeated. */
  dataKey: DataKey
  keyring: Keyring
  random: Random
  now: number
}

/** An ack token, an agent token where the service has a dashboard login, and both sealed. */
function makeCredentials(options: CredentialsOptions): SignupCredentials {
  const { session, service, integrator, dataKey, keyring, random, now } = options
  const ackToken = generateToken('gtack', dataKey.random('ack-token'))
  const agentToken = agentTokenFor(service, dataKey)
  const outputs = agentToken === null ? {} : { [agentTokenEnvName(service.id)]: agentToken }
  const gate = sealEnvelope(
    { version: 1, outputs, ack_token: ackToken },
    { delivery: deliveryKeyOf(session), random },
  )
  return {
    delivery_sealed: sealBundle({ integrator, gate }, { dataKey, gateSessionId: session.id, random }),
    delivery_expires_at: now + deliveryTtlMs,
    ack_token_hash: tokenHashes(keyring, ackToken)[0],
    agent_token_hash: agentToken && tokenHashes(keyring, agentToken)[0],
    agent_token_expires_at: agentToken && now + agentTokenTtlMs,
    approved_at: now,
  }
}

function agentTokenFor({ definition }: RegisteredService, dataKey: DataKey) {
  if (definition.dashboard_login_url === null) return null
  return generateToken('agt', dataKey.random('agent-token'))
}
