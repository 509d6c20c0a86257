import { parseCookie } from 'cookie'
import type { FastifyRequest } from 'fastify'
import type { LRUCache } from 'lru-cache'
import { type Auth, createCallerAuth, type VerifyCaller } from '../../infra/access/auth.ts'
import { type Budget, createBudget, rateLimitError } from '../../infra/access/budget.ts'
import type { RequestMeter } from '../../infra/access/charge.ts'
import type { PersonPrincipal } from '../../infra/access/principal.ts'
import { sourceOf } from '../../infra/access/source.ts'
import { constantTimeEqual } from '../../infra/crypto/constant-time.ts'
import { isToken } from '../../infra/crypto/tokens.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { type ConcurrencyLimit, createConcurrencyLimit } from '../../infra/flow/limit.ts'
import type { MissingProxyDetector } from '../../infra/http/missing-proxy.ts'
import { createLru } from '../../infra/lru.ts'
import { authenticateToken, type ConsoleDeps, type ConsoleLogin, csrfTokenOf } from './commands.ts'
import {
  type ConsoleSession,
  consoleRefusedError,
  environmentHeader,
  requestedEnvironment,
  scopesOf,
} from './decide.ts'
import { isMutation, requireSecureSite, type Site } from './site.ts'

export interface ConsoleAuthOptions extends ConsoleDeps {
  publicUrl: string
  meter: RequestMeter
  missingProxy?: Pick<MissingProxyDetector, 'warning'>
  limits: LoginLimits
}

/** Limits the database load of requests without a session. */
export interface LoginLimits {
  /** Sign-in attempts, by source address. */
  loginBudget: Budget
  /** Failed session lookups, by source address, or by token if the token was valid before. */
  failureBudget: Budget
  /** Tokens seen with a session. They bypass the budget of the source address and `lookupLimit`. */
  validTokens: LRUCache<string, true>
  lookupLimit: ConcurrencyLimit
}

export const createLoginLimits = ({ clock }: Pick<ConsoleDeps, 'clock'>): LoginLimits => ({
  loginBudget: createBudget({ clock, perSecond: 1, burst: 60 }),
  failureBudget: createBudget({ clock }),
  validTokens: createLru(10_000),
  // Far below the pool size. A lookup takes only a millisecond.
  lookupLimit: createConcurrencyLimit({ max: 4 }),
})

export const tokenIn = ({ headers }: Pick<FastifyRequest, 'headers'>, { cookie }: Site): string =>
  parseCookie(headers.cookie ?? '')[cookie.name] ?? ''

/**
 * Returns the session of the request's cookie. Throws 401 if there is none, and 403 for a mutation with the wrong
 * `X-CSRF-Token`.
 */
export async function requireLogin(
  request: FastifyRequest,
  options: ConsoleAuthOptions,
): Promise<ConsoleLogin> {
  const token = tokenIn(request, requireSecureSite(request, options.publicUrl))
  if (token === '') throw new ApiError('console.login_required')
  const session = await requireSession(token, request, options)
  if (
    isMutation(request) &&
    !constantTimeEqual(csrfTokenOf(token), String(request.headers['x-csrf-token'] ?? ''))
  )
    throw consoleRefusedError('X-CSRF-Token is missing or belongs to another session.')
  return { token, session }
}

/**
 * Returns the session of an administrator. Throws 403 for other roles, and for sessions with the permissions of a key,
 * which must not outlive the key. `action` completes "Only administrators can ...".
 */
export async function requireAdministrator(
  request: FastifyRequest,
  options: ConsoleAuthOptions,
  action: string,
): Promise<ConsoleSession> {
  const { session } = await requireLogin(request, options)
  if ('role' in session.rights && session.rights.role === 'admin') return session
  throw consoleRefusedError(`Only administrators can ${action}.`)
}

/** Returns the session of a token. Throws 401 if there is none, and 429 after too many failed lookups. */
async function requireSession(
  token: string,
  { ip }: FastifyRequest,
  { limits, ...deps }: ConsoleAuthOptions,
): Promise<ConsoleSession> {
  if (!isToken('contok', token)) throw new ApiError('console.login_required')
  const isValid = limits.validTokens.get(token) === true
  const budgetKey = isValid ? token : sourceOf(ip)
  if (!limits.failureBudget.spend(budgetKey)) throw rateLimitError()
  const find = () => authenticateToken(deps, token)
  try {
    const session = await (isValid ? find() : limits.lookupLimit.run([], find))
    limits.failureBudget.refund(budgetKey)
    limits.validTokens.set(token, true)
    return session
  } catch (error) {
    if (!isLoginRequiredError(error)) limits.failureBudget.refund(budgetKey)
    throw error
  }
}

const isLoginRequiredError = (error: unknown) =>
  error instanceof ApiError && error.code === 'console.login_required'

/** Authenticates REST API requests below `/console/api` by session cookie, never by the Authorization header. */
export function createConsoleAuth(options: ConsoleAuthOptions): Auth {
  const verifyCaller: VerifyCaller = (proceed) => (request, reply, done) => {
    const admission = requireLogin(request, options).then(({ session }) => {
      const principal = principalOf(session, request)
      request.principal = principal
      return proceed(principal, request, reply)
    })
    admission.then(() => done(), done)
  }
  return createCallerAuth(verifyCaller, options.meter)
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
