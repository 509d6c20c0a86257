import { parseCookie } from 'cookie'
import type { FastifyRequest } from 'fastify'
import { type Auth, createCallerAuth, type VerifyCaller } from '../../infra/access/auth.ts'
import type { Charges } from '../../infra/access/charge.ts'
import type { PersonPrincipal } from '../../infra/access/principal.ts'
import { isSameText } from '../../infra/crypto/same-text.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import type { ConcurrencyLimit } from '../../infra/flow/limit.ts'
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
  /** Who guesses tokens and codes has a few connections to the database at most. */
  lookups: ConcurrencyLimit
}

export const cookieOf = ({ headers }: Pick<FastifyRequest, 'headers'>, { cookie }: Site): string =>
  parseCookie(headers.cookie ?? '')[cookie.name] ?? ''

/** Who is logged in. 401 where nobody is; 403 for a change without the session's token in `X-CSRF-Token`. */
export async function loggedIn(request: FastifyRequest, options: ConsoleAuthOptions): Promise<LoggedIn> {
  const token = cookieOf(request, siteOf(request, options.publicUrl))
  if (token === '') throw new ApiError('console.login_required')
  const session = await options.lookups.run([], () => consoleSessionOf(options, token))
  if (changes(request) && !isSameText(csrfTokenOf(token), String(request.headers['x-csrf-token'] ?? '')))
    throw consoleRefusal('X-CSRF-Token is missing, or is not the one of this session.')
  return { token, session }
}

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
  const { id, organization } = session
  return {
    type: 'person',
    consoleSessionId: id,
    organizationId: organization.id,
    environment: chosenEnvironment(session, headers[environmentHeader]),
    scopes: scopesOf(session),
    capabilities: organization.capabilities,
  }
}
