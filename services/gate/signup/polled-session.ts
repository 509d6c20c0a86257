import type { Keyring } from '../../../infra/crypto/keyring.ts'
import { isTokenOf, type Token } from '../../../infra/crypto/tokens.ts'
import { ApiError } from '../../../infra/http/errors.ts'
import type { GateSessionRow } from '../../../projections/gate/rows.ts'
import { foundSession } from '../session-state.ts'

/** The signup for the holder of its poll token: 404 without it, also for logins, and 401 for another's token. */
export function polledSession(
  session: GateSessionRow | undefined,
  { keyring, token }: { keyring: Keyring; token: Token<'gtpoll'> },
): GateSessionRow {
  const found = foundSession(session?.kind === 'signup' ? session : undefined)
  if (isTokenOf(keyring, { token, hash: found.poll_token_hash })) return found
  throw new ApiError('auth.invalid_api_key')
}
