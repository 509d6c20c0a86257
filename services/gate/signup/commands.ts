import {
  generateToken,
  isToken,
  isTokenOf,
  type Token,
  tokenHashes,
} from '../../../infra/crypto/tokens.ts'
import { unavailable } from '../../../infra/errors/errors.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import { type GateSessionId, randomId } from '../../../infra/ids.ts'
import { generateConfirmationCode } from '../../../infra/wire/gate.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import type { GateDeps } from '../context.ts'
import { findRegistered } from '../registry/registered.ts'
import { seenOf, sessionStream } from '../sessions.ts'
import { closingFor } from '../store.ts'
import {
  decideAcknowledgement,
  decideClosedPage,
  decideCodeExpiry,
  decideDecline,
  decideDeliveryExpiry,
  decideOpening,
  decideSessionExpiry,
  type SessionSpec,
} from './decide.ts'

/** The session with its poll token, which nobody sees again. ApiError: 404 unless the service is open for signups. */
export async function openSignup(
  { decide, keyring, clock, random, pool, publicUrl }: GateDeps,
  { serviceId, spec }: { serviceId: string; spec: SessionSpec },
): Promise<{ session: GateSessionRow; pollToken: Token<'gtpoll'> }> {
  const gateSessionId = randomId('gate', random)
  const pollToken = generateToken('gtpoll', random)
  const [pollTokenHash] = tokenHashes(keyring, pollToken)
  const confirmationCode = generateConfirmationCode(random)
  const now = clock()
  await decide({
    ...sessionStream(gateSessionId),
    alsoReads: [seenOf(serviceId)],
    async load(tx) {
      const service = await findRegistered(tx, { serviceId, publicUrl })
      const owner = service?.organization_id
      const organization = owner ? await findOrganization(tx, owner) : undefined
      return { service, organization, session: await findGateSession(tx, gateSessionId) }
    },
    decide: (state) =>
      decideOpening(state, { gateSessionId, spec, pollTokenHash, confirmationCode, now }),
  })
  const session = await findGateSession(pool, gateSessionId)
  // This is no refusal, because the session is open, and the same command will find it.
  if (!session) throw unavailable(new Error(`the opened session ${gateSessionId} is not readable`))
  return { session, pollToken }
}

/** Ends a delivery and deletes its key. ApiError as `decideAcknowledgement`. */
export async function acknowledgeDelivery(
  deps: GateDeps,
  gateSessionId: GateSessionId,
  ackToken: string,
): Promise<void> {
  const { decide, clock, keyring, random } = deps
  const acknowledgementId = random(16).toString('hex')
  const now = clock()
  await decide({
    ...sessionStream(gateSessionId),
    load: async (tx) => {
      const session = await findGateSession(tx, gateSessionId)
      const hash = session?.ack_token_hash ?? null
      const isAckToken = isToken('gtack', ackToken) && isTokenOf(keyring, { token: ackToken, hash })
      return { session, isAckToken }
    },
    decide: (state) => decideAcknowledgement(state, { acknowledgementId, now }),
  })
  await forget(deps, gateSessionId)
}

// The purge deletes what this could not.
async function forget({ vault, logger }: GateDeps, gateSessionId: GateSessionId): Promise<void> {
  await vault.remove([gateSessionId]).catch((err) => {
    logger.warn(
      { err, gate_session_id: gateSessionId },
      'the key of an ended delivery is deleted later',
    )
  })
}

/** Whether the delivery expired now; its key is then deleted. */
export async function expireDelivery(
  deps: GateDeps,
  gateSessionId: GateSessionId,
): Promise<boolean> {
  const ended = await decideAbout(deps, gateSessionId, decideDeliveryExpiry)
  if (ended) await forget(deps, gateSessionId)
  return ended
}

export const declineSession = (deps: GateDeps, gateSessionId: GateSessionId) =>
  decideAbout(deps, gateSessionId, decideDecline)

export const expireSession = (deps: GateDeps, gateSessionId: GateSessionId) =>
  decideAbout(deps, gateSessionId, decideSessionExpiry)

export const expireCode = (deps: GateDeps, gateSessionId: GateSessionId) =>
  decideAbout(deps, gateSessionId, decideCodeExpiry)

async function decideAbout(
  { decide, clock }: GateDeps,
  gateSessionId: GateSessionId,
  rule: (session: GateSessionRow | undefined, at: { now: number }) => DecidedEvent[],
): Promise<boolean> {
  const now = clock()
  const events = await decide({
    ...sessionStream(gateSessionId),
    load: (tx) => findGateSession(tx, gateSessionId),
    decide: (session) => rule(session, { now }),
  })
  return events.length > 0
}

/** Whether the session was rejected now, because its page stayed closed. */
export async function rejectClosed(
  { decide, clock }: GateDeps,
  gateSessionId: GateSessionId,
): Promise<boolean> {
  const now = clock()
  const events = await decide({
    ...sessionStream(gateSessionId),
    load: async (tx) => ({
      session: await findGateSession(tx, gateSessionId),
      closingForMs: await closingFor(tx, gateSessionId),
    }),
    decide: (state) => decideClosedPage(state, { now }),
  })
  return events.length > 0
}
