import { generateToken, isToken, isTokenOf, type Token, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { unavailable } from '../../../infra/errors/errors.ts'
import type { CommandDeps, Decide, DecidedEvent } from '../../../infra/event-store/decide.ts'
import { type GateSessionId, randomId } from '../../../infra/ids.ts'
import type { Db, Tx } from '../../../infra/postgres/pool.ts'
import { generateConfirmationCode } from '../../../infra/wire/gate.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import type { GateOptions } from '../context.ts'
import { findRegistered } from '../registry/registered.ts'
import { seenOf, sessionStream } from '../sessions.ts'
import { closingFor } from '../store.ts'
import type { Vault } from '../vault.ts'
import {
  decideAcknowledgement,
  decideClosedPage,
  decideCodeExpiry,
  decideDecline,
  decideDeliveryExpiry,
  decideOpening,
  decideSessionExpiry,
  type OpeningState,
  type SessionSpec,
} from './decide.ts'

type OpenSignupDeps = CommandDeps & { pool: Db; publicUrl: string }

interface OpenedSignup {
  session: GateSessionRow
  // Shown this once.
  pollToken: Token<'gtpoll'>
}

/** ApiError: 404 unless the service is open for signups. */
export async function openSignup(
  { decide, keyring, clock, random, pool, publicUrl }: OpenSignupDeps,
  { serviceId, spec }: { serviceId: string; spec: SessionSpec },
): Promise<OpenedSignup> {
  const gateSessionId = randomId('gate', random)
  const pollToken = generateToken('gtpoll', random)
  const [pollTokenHash] = tokenHashes(keyring, pollToken)
  const confirmationCode = generateConfirmationCode(random)
  const now = clock()
  await decide({
    ...sessionStream(gateSessionId),
    alsoReads: [seenOf(serviceId)],
    load: (tx) => loadOpening(tx, { gateSessionId, serviceId, publicUrl }),
    decide: (state) => decideOpening(state, { gateSessionId, spec, pollTokenHash, confirmationCode, now }),
  })
  const session = await findGateSession(pool, gateSessionId)
  // Not a refusal: the session is open, and the same command will show it.
  if (!session) throw unavailable(new Error(`the opened session ${gateSessionId} is not readable`))
  return { session, pollToken }
}

interface Opening {
  gateSessionId: GateSessionId
  serviceId: string
  publicUrl: string
}

async function loadOpening(tx: Tx, { gateSessionId, ...named }: Opening): Promise<OpeningState> {
  const service = await findRegistered(tx, named)
  const owner = service?.organization_id
  return {
    service,
    organization: owner ? await findOrganization(tx, owner) : undefined,
    session: await findGateSession(tx, gateSessionId),
  }
}

type EndDeps = Pick<GateOptions, 'clock'> & { decide: Decide }

type DeliveryDeps = EndDeps & Pick<GateOptions, 'logger'> & { vault: Vault }

export async function declineSession(deps: EndDeps, gateSessionId: GateSessionId): Promise<void> {
  await aboutSession(deps, { gateSessionId, decide: decideDecline })
}

export interface Acknowledge {
  gateSessionId: GateSessionId
  ackToken: string
}

/** Ends a delivery and deletes its key. ApiError as of `decideAcknowledgement`. */
export async function acknowledgeDelivery(
  { decide, clock, keyring, random, ...deps }: DeliveryDeps & Pick<CommandDeps, 'keyring' | 'random'>,
  { gateSessionId, ackToken: token }: Acknowledge,
): Promise<void> {
  const acknowledgementId = random(16).toString('hex')
  const now = clock()
  await decide({
    ...sessionStream(gateSessionId),
    load: async (tx) => {
      const session = await findGateSession(tx, gateSessionId)
      const hash = session?.ack_token_hash ?? null
      return { session, isAckToken: isToken('gtack', token) && isTokenOf(keyring, { token, hash }) }
    },
    decide: (state) => decideAcknowledgement(state, { acknowledgementId, now }),
  })
  await forget(deps, gateSessionId)
}

export function expireSession(deps: EndDeps, gateSessionId: GateSessionId): Promise<boolean> {
  return aboutSession(deps, { gateSessionId, decide: decideSessionExpiry })
}

/** Whether the delivery expired now; its key is then deleted. */
export async function expireDelivery(deps: DeliveryDeps, gateSessionId: GateSessionId): Promise<boolean> {
  const ended = await aboutSession(deps, { gateSessionId, decide: decideDeliveryExpiry })
  if (ended) await forget(deps, gateSessionId)
  return ended
}

// The purge deletes what this could not.
async function forget({ vault, logger }: Omit<DeliveryDeps, keyof EndDeps>, gateSessionId: GateSessionId) {
  await vault.remove([gateSessionId]).catch((err) => {
    logger.warn({ err, gate_session_id: gateSessionId }, 'the key of an ended delivery is deleted later')
  })
}

export function expireCode(deps: EndDeps, gateSessionId: GateSessionId): Promise<boolean> {
  return aboutSession(deps, { gateSessionId, decide: decideCodeExpiry })
}

/** Whether the session was rejected now, because its page stayed closed. */
export async function rejectClosed(
  { decide, clock }: EndDeps,
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

interface AboutSession {
  gateSessionId: GateSessionId
  decide: (session: GateSessionRow | undefined, at: { now: number }) => DecidedEvent[]
}

async function aboutSession(
  { decide, clock }: EndDeps,
  { gateSessionId, decide: rule }: AboutSession,
): Promise<boolean> {
  const now = clock()
  const events = await decide({
    ...sessionStream(gateSessionId),
    load: (tx) => findGateSession(tx, gateSessionId),
    decide: (session) => rule(session, { now }),
  })
  return events.length > 0
}
