import { isToken, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { createCatchUpGate } from '../../../infra/event-store/catch-up.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { withTimeout } from '../../../infra/timing.ts'
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
  type TokenScope,
  tokenInScope,
  usableToken,
} from './decide.ts'

/** Returns the token if it is usable and belongs to the scope; otherwise undefined. Counts as a use of the token. */
export async function verifyAgentToken(
  deps: GateDeps,
  agentToken: string,
  scope: TokenScope,
): Promise<AgentTokenRow | undefined> {
  if (!isToken('agt', agentToken)) return undefined
  const token = await findAgentToken(deps.pool, tokenHashes(deps.keyring, agentToken))
  const usable = usableToken(tokenInScope(token, scope), deps.clock())
  return usable && renewTokenIfDue(deps, usable)
}

const renewalTimeoutMs = 2000

/**
 * Renews a usable token, at most once a day, and returns it; undefined if it was revoked meanwhile. A failed renewal is
 * only logged, because the next use of the token tries again.
 */
export async function renewTokenIfDue(
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
    await withTimeout(renewal, renewalTimeoutMs)
  } catch (err) {
    logger.warn({ err, gate_account_id: token.gate_account_id }, 'failed to renew agent token')
  }
  return usableToken(await findAgentToken(pool, hashes), now)
}

type FindToken = (db: Db) => Promise<AgentTokenRow | undefined>

/** Returns a function that finds the token; undefined if it is malformed. */
export function tokenFinder({ keyring }: Pick<GateDeps, 'keyring'>, agentToken: string): FindToken {
  const hashes = isToken('agt', agentToken) ? tokenHashes(keyring, agentToken) : []
  return (db) => findAgentToken(db, hashes)
}

/** Throws 404 unless `find` returns a token of the scope. */
export async function revokeAgentToken(
  {
    pool,
    decide,
    clock,
    readFresh,
  }: Pick<GateDeps, 'pool' | 'decide' | 'clock'> & Pick<GateContext, 'readFresh'>,
  find: FindToken,
  scope: TokenScope,
): Promise<void> {
  // Safe to read before the lock, because a token's session never changes.
  const token = tokenInScope(await readFresh(() => find(pool)), scope)
  if (!token) throw noSuchToken()
  const now = clock()
  await decide({
    ...sessionStream(token.gate_session_id),
    load: find,
    decide: (state) => decideRevocation(state, { ...scope, now }),
  })
}

export function createFreshReader({
  pool,
  ...parts
}: Pick<GateParts, 'pool' | 'log' | 'applied'>): GateContext['readFresh'] {
  const readModels = [{ projection: 'gate', topic: eventTopics.AgentTokenRevoked }]
  const caughtUp = createCatchUpGate({ ...parts, db: pool, readModels })
  return async (read) => {
    await caughtUp.waitUntilCaughtUp()
    return await read()
  }
}
