import type { FastifyRequest } from 'fastify'
import { isTokenOf } from '../../../infra/crypto/tokens.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import type { GateLimit } from '../limits.ts'
import { gateSessionIdOf, pollTokenOf } from '../requests.ts'
import { foundSession } from '../sessions.ts'

interface Polled {
  request: FastifyRequest
  limit: Extract<GateLimit, 'poll' | 'ack' | 'claim'>
}

/**
 * The signup of the request's poll token. Counts the request towards the limit of the token. ApiError: 404 no such
 * signup, 401 another's token, 429. Requests that only guess are not counted.
 */
export async function polledSession(
  { pool, keyring, limits }: Pick<GateContext, 'pool' | 'keyring' | 'limits'>,
  { request, limit }: Polled,
): Promise<GateSessionRow> {
  const session = await findGateSession(pool, gateSessionIdOf(request))
  const found = foundSession(session?.kind === 'signup' ? session : undefined)
  const token = pollTokenOf(request)
  if (!isTokenOf(keyring, { token, hash: found.poll_token_hash })) throw new ApiError('auth.invalid_api_key')
  await limits.count(limit, token)
  return found
}
