import { parseCookie } from 'cookie'
import type { FastifyRequest } from 'fastify'
import type { LRUCache } from 'lru-cache'
import { type Auth, createCallerAuth, type VerifyCaller } from '../../infra/access/auth.ts'
import { type Budget, createBudget, overBudget } from '../../infra/access/budget.ts'
import type { Charges } from '../../infra/access/charge.ts'
import type { PersonPrincipal } from '../../infra/access/principal.ts'
import { sourceOf } from '../../infra/access/source.ts'
import { isSameText } from '../../infra/crypto/same-text.ts'
import { isToken } from '../../infra/crypto/tokens.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { type ConcurrencyLimit, createConcurrencyLimit } from '../../infra/flow/limit.ts'
import type { MissingProxy } from '../../infra/http/missing-proxy.ts'
import { createLru } from '../../infra/lru.ts'
import { type ConsoleDeps, consoleSessionOf, csrfTokenOf, type LoggedIn } from './commands.ts'
import {
  type ConsoleSession,
  chosenEnvironment,
  consoleRefusal,
  environmentHeader,
  scopesOf,
} from './decide.ts'
import { changes, type Site, siteOf } from './site.ts'

export interface ConsoleAuthOptions extends ConsoleDeps {
  publicUrl: string
  charges: Charges
  missingProxy?: Pick<MissingProxy, 'warning'>
  lookups: SessionLookups
}

/** Bounds on what requests without a session cost the database. */
export interface SessionLookups {
  /** Log-ins of a source. */
  logins: Budget
  /** Look-ups that found no session: of a source, or of a token that had one. */
  failures: Budget
  /** Tokens of sessions. Neither the budget of their source nor the queue of `guesses` holds them up. */
  valid: LRUCache<string, true>
  guesses: ConcurrencyLimit
}

export const createLookups = ({ clock }: Pick<ConsoleDeps, 'clock'>): SessionLookups => ({
  logins: createBudget({ clock, perSecond: 1, burst: 60 }),
  failures: createBudget({ clock }),
  valid: createLru(10_000),
  // Far fewer than there are connections, and each takes a millisecond.
  guesses: createConcurrencyLimit({ max: 4 }),
})

export const cookieOf = ({ headers }: Pick<FastifyRequest, 'headers'>, { cookie }: Site): string =>
  parseCookie(headers.cookie ?? '')[cookie.name] ?? ''

/** Who is logged in. 401 where nobody is; 403 for a change without the session's token in `X-CSRF-Token`. */
export async function loggedIn(
  request: FastifyRequest,
  options: ConsoleAuthOptions,
): Promise<LoggedIn> {
  const token = cookieOf(request, siteOf(request, options.publicUrl))
  if (token === '') throw new ApiError('console.login_required')
  const session = await findSession(token, request, options)
  if (
    changes(request) &&
    !isSameText(csrfTokenOf(token), String(request.headers['x-csrf-token'] ?? ''))
  )
    throw consoleRefusal('X-CSRF-Token is missing, or is not the one of this session.')
  return { token, session }
}

/** Finds the session of a token. 429 after too many look-ups that found none. */
async function findSession(
  token: string,
  { ip }: FastifyRequest,
  { lookups, ...deps }: ConsoleAuthOptions,
): Promise<ConsoleSession> {
  if (!isToken('contok', token)) throw new ApiError('console.login_required')
  const isValid = lookups.valid.get(token) === true
  const spender = isValid ? token : sourceOf(ip)
  if (!lookups.failures.spend(spender)) throw overBudget()
  const find = () => consoleSessionOf(deps, token)
  try {
    const session = await (isValid ? find() : lookups.guesses.run([], find))
    lookups.failures.giveBack(spender)
    lookups.valid.set(token, true)
    return session
  } catch (error) {
    if (!isLoginRequired(error)) lookups.failures.giveBack(spender)
    throw error
  }
}

const isLoginRequired = (error: unknown) =>
  error instanceof ApiError && error.code === 'console.login_required'

/** Routes of the REST API learn from it who is logged in. It looks at no Authorization header. */
export function createConsoleAuth(options: ConsoleAuthOptions): Auth {
  const verified: VerifyCaller = (proceed) => (request, reply, done) => {
    const admitted = loggedIn(request, options).then(({ session }) => {
      const principal = principalOf(session, request)
      request.principal = principal
      return proceed(principal, request, reply)
    })
    admitted.then(() => done(), done)
  }
  return createCallerAuth(verified, options.charges)
}

function principalOf(session: ConsoleSession, { headers }: FastifyRequest): PersonPrincipal {
  const { id, organization, environments } = session
  return {
    type: 'person',
    consoleSessionId: id,
    organizationId: organization.id,
    environment: chosenEnvironment(session, headers[environmentHeader]),
    environments,
    scopes: scopesOf(session),
    capabilities: organization.capabilities,
  }
}
