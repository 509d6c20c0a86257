import { tokenHashes } from '../../../infra/crypto/tokens.ts'
import { within } from '../../../infra/timing.ts'
import { findAgentToken } from '../../../projections/gate/queries.ts'
import type { AgentTokenRow } from '../../../projections/gate/tables.ts'
import type { GateParts } from '../context.ts'
import { sessionStream } from '../streams.ts'
import { isRenewalDue, renewAgentToken, usableToken } from './agent-token.ts'

/** How long whoever uses a token waits for its renewal, in milliseconds. */
const renewalMs = 2000

type UseDeps = Pick<GateParts, 'pool' | 'keyring' | 'decide' | 'logger'>

/** The agent token as it is stored, whatever has become of it; undefined for an unknown one. */
export function findToken(
  { pool, keyring }: Pick<UseDeps, 'pool' | 'keyring'>,
  token: string,
): Promise<AgentTokenRow | undefined> {
  return findAgentToken(pool, tokenHashes(keyring, token))
}

/**
 * Counts as a use of a good token, which is renewed where that is due. The token as it is after that; undefined when it
 * was revoked meanwhile. A log that cannot be reached now renews it at a later use: this one counts all the same.
 */
export async function useToken(
  deps: UseDeps,
  { token, now }: { token: AgentTokenRow; now: number },
): Promise<AgentTokenRow | undefined> {
  if (!isRenewalDue(token, now)) return token
  const hashes = [token.token_hash]
  const renewal = deps.decide({
    ...sessionStream(token.gate_session_id),
    load: (tx) => findAgentToken(tx, hashes),
    decide: (state) => renewAgentToken(state, { now }),
  })
  try {
    await within(renewal, renewalMs)
  } catch (err) {
    deps.logger.warn({ err, gate_account_id: token.gate_account_id }, 'an agent token was not renewed')
  }
  return usableToken(await findAgentToken(deps.pool, hashes), now)
}
