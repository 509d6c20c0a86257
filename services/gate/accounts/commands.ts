import { isToken, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { createCaughtUp } from '../../../infra/event-store/catch-up.ts'
import { within } from '../../../infra/timing.ts'
import { findAgentToken } from '../../../projections/gate/queries.ts'
import type { AgentTokenRow } from '../../../projections/gate/tables.ts'
import { eventTopics } from '../../../schemas/events.ts'
import type { GateContext, GateDeps, GateParts } from '../context.ts'
import { sessionStream } from '../sessions.ts'
import {
  decideRenewal,
  decideRevocation,
  isRenewalDue,
  noSuchToken,
  ownToken,
  type TokenScope,
  usableToken,
} from './decide.ts'

/** Counts as a use. undefined unless the token is usable and of the scope. */
export async function verifyAgentToken(
  deps: GateDeps,
  agentToken: string,
  scope: TokenScope,
): Promise<AgentTokenRow | undefined> {
  if (!isToken('agt', agentToken)) return undefined
  const token = await findAgentToken(deps.pool, tokenHashes(deps.keyring, agentToken))
  const usable = usableToken(ownToken(token, scope), deps.clock())
  return usable && useToken(deps, usable)
}

const renewalTimeoutMs = 2000

/**
 * Renews a usable token where that is due; undefined when it was revoked meanwhile. A renewal that fails is left to a
 * later use.
 */
export async function useToken(
  { decide, pool, logger, clock }: GateDeps,
  token: AgentTokenRow,
): Promise<AgentTokenRow | undefined> {
  const now = clock()
  if (!isRenewalDue(token, now)) return token
  const hashes = [token.token_hash]
  const renewal = decide({
    ...sessionStream(token.gate_session_id),
    load: (tx) => findAgentToken(tx, hashes),
    decide: (state) => decideRenewal(state, { now }),
  })
  try {
    await within(renewal, renewalTimeoutMs)
  } catch (err) {
    logger.warn({ err, gate_account_id: token.gate_account_id }, 'an agent token was not renewed')
  }
  return usableToken(await findAgentToken(pool, hashes), now)
}

export async function revokeAgentToken(
  { pool, keyring, decide, clock, readCurrent }: GateDeps & Pick<GateContext, 'readCurrent'>,
  agentToken: string,
  scope: TokenScope,
): Promise<void> {
  const hashes = isToken('agt', agentToken) ? tokenHashes(keyring, agentToken) : []
  // Which session issued a token never changes, so it may be read before the lock is acquired.
  const token = ownToken(await readCurrent(() => findAgentToken(pool, hashes)), scope)
  if (!token) throw noSuchToken()
  const now = clock()
  await decide({
    ...sessionStream(token.gate_session_id),
    load: (tx) => findAgentToken(tx, hashes),
    decide: (state) => decideRevocation(state, { ...scope, now }),
  })
}

export function createReadCurrent({ pool, ...parts }: GateParts): GateContext['readCurrent'] {
  const readModels = [{ projection: 'gate', topic: eventTopics.AgentTokenRevoked }]
  const caughtUp = createCaughtUp({ ...parts, db: pool, readModels })
  return async (read) => {
    await caughtUp.waitUntilCaughtUp()
    return await read()
  }
}
