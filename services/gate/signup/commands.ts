import {
  generateToken,
  isToken,
  matchesTokenHash,
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
import { findRegisteredService } from '../registry/registered-services.ts'
import { gateEventsOf, sessionStream } from '../sessions.ts'
import { pageClosedForMs } from '../store.ts'
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

/** Opens a signup and returns it with its poll token, of which only the hash is stored. Throws as `decideOpening`. */
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
    alsoReads: [gateEventsOf(serviceId)],
    async load(tx) {
      const service = await findRegisteredService(tx, { serviceId, publicUrl })
      const owner = service?.organization_id
      const organization = owner ? await findOrganization(tx, owner) : undefined
      return { service, organization, session: await findGateSession(tx, gateSessionId) }
    },
    decide: (state) =>
      decideOpening(state, { gateSessionId, spec, pollTokenHash, confirmationCode, now }),
  })
  const session = await findGateSession(pool, gateSessionId)
  // Retryable, because a repeated command finds the session.
  if (!session) throw unavailable(new Error(`the opened session ${gateSessionId} is not readable`))
  return { session, pollToken }
}

/** Ends the delivery and deletes its data key. Throws the errors of `decideAcknowledgement`. */
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
      const isAckToken =
        isToken('gtack', ackToken) && matchesTokenHash(keyring, { token: ackToken, hash })
      return { session, isAckToken }
    },
    decide: (state) => decideAcknowledgement(state, { acknowledgementId, now }),
  })
  await tryDeleteKey(deps, gateSessionId)
}

// Only logs a failure, because the purge deletes the key later.
async function tryDeleteKey(
  { vault, logger }: GateDeps,
  gateSessionId: GateSessionId,
): Promise<void> {
  await vault.remove([gateSessionId]).catch((err) => {
    logger.warn(
      { err, gate_session_id: gateSessionId },
      'failed to delete the data key of a finished delivery; the purge deletes it',
    )
  })
}

/** Expires the delivery and deletes its data key. Returns false if the delivery is not overdue. */
export async function expireDelivery(
  deps: GateDeps,
  gateSessionId: GateSessionId,
): Promise<boolean> {
  const hasExpired = await applyDecision(deps, gateSessionId, decideDeliveryExpiry)
  if (hasExpired) await tryDeleteKey(deps, gateSessionId)
  return hasExpired
}

export const declineSession = (deps: GateDeps, gateSessionId: GateSessionId) =>
  applyDecision(deps, gateSessionId, decideDecline)

export const expireSession = (deps: GateDeps, gateSessionId: GateSessionId) =>
  applyDecision(deps, gateSessionId, decideSessionExpiry)

export const expireCode = (deps: GateDeps, gateSessionId: GateSessionId) =>
  applyDecision(deps, gateSessionId, decideCodeExpiry)

// Returns true if the decision returned an event.
async function applyDecision(
  { decide, clock }: GateDeps,
  gateSessionId: GateSessionId,
  decision: (session: GateSessionRow | undefined, at: { now: number }) => DecidedEvent[],
): Promise<boolean> {
  const now = clock()
  const events = await decide({
    ...sessionStream(gateSessionId),
    load: (tx) => findGateSession(tx, gateSessionId),
    decide: (session) => decision(session, { now }),
  })
  return events.length > 0
}

/** Rejects the session. Returns false if its page is open again or the session has ended. */
export async function rejectIfPageClosed(
  { decide, clock }: GateDeps,
  gateSessionId: GateSessionId,
): Promise<boolean> {
  const now = clock()
  const events = await decide({
    ...sessionStream(gateSessionId),
    load: async (tx) => ({
      session: await findGateSession(tx, gateSessionId),
      closedMs: await pageClosedForMs(tx, gateSessionId),
    }),
    decide: (state) => decideClosedPage(state, { now }),
  })
  return events.length > 0
}
