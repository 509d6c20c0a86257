import type { FastifyRequest } from 'fastify'
import { isTokenOf } from '../../../infra/crypto/tokens.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { pollTokenOf } from '../requests/bearer.ts'
import { type GateSessionPath, gateSessionIdOf } from '../requests/session-path.ts'
import type { GateLimit } from '../serving/limits.ts'
import { foundSession } from '../session-state.ts'
import type { SignupContext } from './context.ts'

/**
 * The signup that the request names, for the holder of its poll token, whose limit it counts towards. ApiError: 404
 * without it, also for logins; 401 for another's token; 429. Nothing is kept of the requests of those who only guess.
 */
export async function polledSession(
  { pool, keyring, limits }: Pick<SignupContext, 'pool' | 'keyring' | 'limits'>,
  { request, limit }: { request: FastifyRequest<GateSessionPath>; limit: Extract<GateLimit, 'poll' | 'ack'> },
): Promise<GateSessionRow> {
  const session = await findGateSession(pool, gateSessionIdOf(request))
  const found = foundSession(session?.kind === 'signup' ? session : undefined)
  const token = pollTokenOf(request)
  if (!isTokenOf(keyring, { token, hash: found.poll_token_hash })) throw new ApiError('auth.invalid_api_key')
  await limits.take(limit, token)
  return found
}
