import { parseCookie } from 'cookie'
import type { FastifyRequest } from 'fastify'
import type { LRUCache } from 'lru-cache'
import { type Auth, createCallerAuth, type VerifyCaller } from '../../infra/access/auth.ts'
import { type Budget, createBudget, rateLimitError } from '../../infra/access/budget.ts'
import type { Charges } from '../../infra/access/charge.ts'
import type { PersonPrincipal } from '../../infra/access/principal.ts'
import { sourceOf } from '../../infra/access/source.ts'
import { isSameText } from '../../infra/crypto/same-text.ts'
import { isToken } from '../../infra/crypto/tokens.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { type ConcurrencyLimit, createConcurrencyLimit } from '../../infra/flow/limit.ts'
import type { MissingProxy } from '../../infra/http/missing-proxy.ts'
import { createLru } from '../../infra/lru.ts'
import { authenticateToken, type ConsoleDeps, type ConsoleLogin, csrfTokenOf } from './commands.ts'
import {
  type ConsoleSession,
  consoleRefusal,
  environmentHeader,
  requestedEnvironment,
  scopesOf,
} from './decide.ts'
import { isMutation, type Site, siteOf } from './site.ts'

export interface ConsoleAuthOptions extends ConsoleDeps {
  publicUrl: string
  charges: Charges
  missingProxy?: Pick<MissingProxy, 'warning'>
  lookups: SessionLookups
}

/** Limits on the database load of requests without a session. */
export interface SessionLookups {
  /** Sign-in attempts by source address. */
  logins: Budget
  /** Failed session lookups, by source address, or by token if the token was valid before. */
  failures: Budget
  /** Tokens seen with a session. They bypass the source's budget and `lookupLimit`. */
  validTokens: LRUCache<string, true>
  lookupLimit: ConcurrencyLimit
}

export const createLookups = ({ clock }: Pick<ConsoleDeps, 'clock'>): SessionLookups => ({
  logins: createBudget({ clock, perSecond: 1, burst: 60 }),
  failures: createBudget({ clock }),
  validTokens: createLru(10_000),
  // Far below the pool's size; a lookup takes a millisecond.
  lookupLimit: createConcurrencyLimit({ max: 4 }),
})

export const cookieOf = ({ headers }: Pick<FastifyRequest, 'headers'>, { cookie }: Site): string =>
  parseCookie(headers.cookie ?? '')[cookie.name] ?? ''

/**
 * Returns the session of the request's cookie. 401 without one; 403 for a mutation without its CSRF token in
 * `X-CSRF-Token`.
 */
export async function requireLogin(
  request: FastifyRequest,
  options: ConsoleAuthOptions,
): Promise<ConsoleLogin> {
  const token = cookieOf(request, siteOf(request, options.publicUrl))
  if (token === '') throw new ApiError('console.login_required')
  const session = await findSession(token, request, options)
  if (
    isMutation(request) &&
    !isSameText(csrfTokenOf(token), String(request.headers['x-csrf-token'] ?? ''))
  )
    throw consoleRefusal('X-CSRF-Token is missing or belongs to another session.')
  return { token, session }
}

/** Returns the session of a token. 401 without one, 429 after too many failed lookups. */
async function findSession(
  token: string,
  { ip }: FastifyRequest,
  { lookups, ...deps }: ConsoleAuthOptions,
): Promise<ConsoleSession> {
  if (!isToken('contok', token)) throw new ApiError('console.login_required')
  const isValid = lookups.validTokens.get(token) === true
  const budgetKey = isValid ? token : sourceOf(ip)
  if (!lookups.failures.spend(budgetKey)) throw rateLimitError()
  const find = () => authenticateToken(deps, token)
  try {
    const session = await (isValid ? find() : lookups.lookupLimit.run([], find))
    lookups.failures.refund(budgetKey)
    lookups.validTokens.set(token, true)
    return session
  } catch (error) {
    if (!isLoginRequired(error)) lookups.failures.refund(budgetKey)
    throw error
  }
}

const isLoginRequired = (error: unknown) =>
  error instanceof ApiError && error.code === 'console.login_required'

/**
 * Returns the auth of the REST API routes below `/console/api`: by session cookie, never by the Authorization header.
 */
export function createConsoleAuth(options: ConsoleAuthOptions): Auth {
  const verifyCaller: VerifyCaller = (proceed) => (request, reply, done) => {
    const admission = requireLogin(request, options).then(({ session }) => {
      const principal = principalOf(session, request)
      request.principal = principal
      return proceed(principal, request, reply)
    })
    admission.then(() => done(), done)
  }
  return createCallerAuth(verifyCaller, options.charges)
}

function principalOf(session: ConsoleSession, { headers }: FastifyRequest): PersonPrincipal {
  const { id, organization, environments } = session
  return {
    type: 'person',
    consoleSessionId: id,
    organizationId: organization.id,
    environment: requestedEnvironment(session, headers[environmentHeader]),
    environments,
    scopes: scopesOf(session),
    capabilities: organization.capabilities,
  }
}
