import { createHmac } from 'node:crypto'
import type pg from 'pg'
import { asSecretPrincipal, requireUsableKey } from '../../infra/access/key-checks.ts'
import { lookupHashes, parseApiKey } from '../../infra/crypto/api-keys.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import { generateToken, isToken, tokenHashes } from '../../infra/crypto/tokens.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { type Clock, type Random, timeOrderedId } from '../../infra/ids.ts'
import { findKeyByLookupHash } from '../../projections/organizations/queries.ts'
import { type ConsoleSession, codeLifetimeMs, isSessionOver, touchIntervalMs } from './decide.ts'
import {
  findConsoleSession,
  type LoginLink,
  redeemCode,
  storeCode,
  storeKeySession,
  touchSession,
} from './store.ts'

export interface ConsoleDeps {
  pool: pg.Pool
  keyring: Keyring
  clock: Clock
  random: Random
}

/** Creates a one-time login link. Browsers don't send the fragment, so the code never appears in a server log. */
export async function createLoginLink(
  { pool, keyring, clock, random }: ConsoleDeps,
  { consoleUrl, ...link }: LoginLink & { consoleUrl: string },
): Promise<string> {
  const code = generateToken('conlog', random)
  const [hash] = tokenHashes(keyring, code)
  await storeCode(pool, { ...link, hash, expiresAt: clock() + codeLifetimeMs })
  return `${consoleUrl.replace(/\/+$/, '')}/console#code=${code}`
}

export interface ConsoleLogin {
  token: string
  session: ConsoleSession
}

const codeError = (message: string) => new ApiError('console.login_required', { message })

/** Redeems the code of a login link. Throws 401 if it is unknown, used or expired. */
export async function logInByCode(deps: ConsoleDeps, code: string): Promise<ConsoleLogin> {
  if (!isToken('conlog', code))
    throw codeError('This login link is not valid. Check that you copied all of it.')
  const { token, ...record } = newSession(deps)
  const hashes = tokenHashes(deps.keyring, code)
  if (!(await redeemCode(deps.pool, { ...record, hashes })))
    throw codeError(
      'This login link was already used or has expired. Links work once, for five minutes; create a new one.',
    )
  return { token, session: await authenticateToken(deps, token) }
}

/** Creates a session with the permissions of a secret key. Throws the same errors as an API request with that key. */
export async function logInByKey(deps: ConsoleDeps, key: string): Promise<ConsoleLogin> {
  const { pool, keyring, clock } = deps
  const apiKey = parseApiKey(key) && (await findKeyByLookupHash(pool, lookupHashes(keyring, key)))
  const { keyId } = asSecretPrincipal(requireUsableKey(apiKey, clock))
  const { token, ...record } = newSession(deps)
  await storeKeySession(pool, { ...record, keyId })
  return { token, session: await authenticateToken(deps, token) }
}

function newSession({ keyring, clock, random }: ConsoleDeps) {
  const now = clock()
  const token = generateToken('contok', random)
  return {
    token,
    tokenHash: tokenHashes(keyring, token)[0],
    id: timeOrderedId('csn', now, random),
    now,
  }
}

/** Returns the session of a token and updates its last use. Throws 401 if the session is unknown or over. */
export async function authenticateToken(deps: ConsoleDeps, token: string): Promise<ConsoleSession> {
  const { pool, keyring, clock } = deps
  const session = isToken('contok', token)
    ? await findConsoleSession(pool, tokenHashes(keyring, token))
    : undefined
  const now = clock()
  if (!session || isSessionOver(session, now)) throw new ApiError('console.login_required')
  if (session.lastUsedAt > now - touchIntervalMs) return session
  await touchSession(pool, { id: session.id, now })
  return { ...session, lastUsedAt: now }
}

/** Derives the CSRF token from the session token. The session token cannot be computed back from it. */
export const csrfTokenOf = (token: string): string =>
  createHmac('sha256', token).update('tidegate:console-csrf').digest('base64url')
