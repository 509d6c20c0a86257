import { createHmac } from 'node:crypto'
import type pg from 'pg'
import { secretOnly, usable } from '../../infra/access/key-checks.ts'
import { lookupHashes, parseApiKey } from '../../infra/crypto/api-keys.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import { generateToken, isToken, tokenHashes } from '../../infra/crypto/tokens.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { type Clock, type Random, timeOrderedId } from '../../infra/ids.ts'
import { findKeyByLookupHash } from '../../projections/organizations/queries.ts'
import { type ConsoleSession, codeMs, isOver, touchMs } from './decide.ts'
import {
  findCode,
  findConsoleSession,
  type LoginLink,
  storeCode,
  storeSessionOfCode,
  storeSessionOfKey,
  touchSession,
} from './store.ts'

export interface ConsoleDeps {
  pool: pg.Pool
  keyring: Keyring
  clock: Clock
  random: Random
}

/** A link for whoever is to be logged in. The code is in its fragment, which is sent to no server and in no log of one. */
export async function makeLoginLink(
  { pool, keyring, clock, random }: ConsoleDeps,
  { consoleUrl, ...link }: LoginLink & { consoleUrl: string },
): Promise<string> {
  const code = generateToken('conlog', random)
  const [hash] = tokenHashes(keyring, code)
  await storeCode(pool, { ...link, hash, expiresAt: clock() + codeMs })
  return `${consoleUrl.replace(/\/+$/, '')}/console#code=${code}`
}

export interface LoggedIn {
  token: string
  session: ConsoleSession
}

const codeRefusals = {
  unknown: 'This login link is not valid. Check that you copied all of it.',
  used: 'This login link was already used. Each link works once; create a new one.',
  expired: 'This login link has expired. Links work for five minutes; create a new one.',
}

const refusedCode = (reason: keyof typeof codeRefusals) =>
  new ApiError('console.login_required', { message: codeRefusals[reason] })

export async function logInByCode(deps: ConsoleDeps, code: string): Promise<LoggedIn> {
  if (!isToken('conlog', code)) throw refusedCode('unknown')
  const { token, ...stored } = newSession(deps)
  const hashes = tokenHashes(deps.keyring, code)
  if (!(await storeSessionOfCode(deps.pool, { ...stored, hashes })))
    throw refusedCode(await findCode(deps.pool, hashes))
  return { token, session: await consoleSessionOf(deps, token) }
}

/** ApiError as for a request with the key. */
export async function logInByKey(deps: ConsoleDeps, key: string): Promise<LoggedIn> {
  const { pool, keyring, clock } = deps
  const found = parseApiKey(key) && (await findKeyByLookupHash(pool, lookupHashes(keyring, key)))
  const { keyId } = secretOnly(usable(found, clock))
  const { token, ...stored } = newSession(deps)
  await storeSessionOfKey(pool, { ...stored, keyId })
  return { token, session: await consoleSessionOf(deps, token) }
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

/** The session of a token, which counts as used. 401 where there is none that still goes on. */
export async function consoleSessionOf(deps: ConsoleDeps, token: string): Promise<ConsoleSession> {
  const { pool, keyring, clock } = deps
  const session = isToken('contok', token)
    ? await findConsoleSession(pool, tokenHashes(keyring, token))
    : undefined
  const now = clock()
  if (!session || isOver(session, now)) throw new ApiError('console.login_required')
  if (session.lastUsedAt > now - touchMs) return session
  await touchSession(pool, { id: session.id, now })
  return { ...session, lastUsedAt: now }
}

/** Follows from the session's token, and tells nothing of it. */
export const csrfTokenOf = (token: string): string =>
  createHmac('sha256', token).update('tidegate:console-csrf').digest('base64url')
