import { stringifySetCookie } from 'cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Auth } from '../../infra/access/auth.ts'
import { overBudget } from '../../infra/access/budget.ts'
import { sourceOf } from '../../infra/access/source.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { single } from '../../infra/http/schemas.ts'
import {
  type ConsoleAuthOptions,
  cookieOf,
  createConsoleAuth,
  createLookups,
  loggedIn,
} from './auth.ts'
import {
  consoleSessionOf,
  csrfTokenOf,
  type LoggedIn,
  logInByCode,
  logInByKey,
} from './commands.ts'
import { longestMs } from './decide.ts'
import { type EngineOptions, engineRoutes } from './engines.ts'
import { pageRoutes } from './page-routes.ts'
import { consoleSessionJson, consoleSessionSchema, loginBody } from './schemas.ts'
import { changes, checkSameOrigin, siteOf } from './site.ts'
import { endAllLike, endSession } from './store.ts'

export interface ConsoleOptions extends Omit<EngineOptions, 'lookups'> {
  /** The module that answers questions about an engine. */
  questionsScript: () => Promise<string>
  /** Adds the routes of the REST API, here below `/console/api`. */
  addRest: (app: FastifyInstance, auth: Auth) => void
}

/** The console at `/console`, and what it calls below `/console/api`. Nothing of it is in the description of the API. */
export async function consoleRoutes(
  app: FastifyInstance,
  { addRest, questionsScript, ...rest }: ConsoleOptions,
): Promise<void> {
  const options = { ...rest, lookups: createLookups(rest) }
  await app.register(
    async (api) => {
      api.addHook('onRoute', (route) => {
        route.schema = { ...route.schema, hide: true }
      })
      api.addHook('onRequest', async (request, reply) => {
        reply.header('cache-control', 'no-store')
        const site = siteOf(request, options.publicUrl)
        if (changes(request)) checkSameOrigin(site, request)
      })
      loginRoute(api, options)
      sessionRoute(api, options)
      logoutRoute(api, options, { path: '/logout', end: endSession })
      logoutRoute(api, options, { path: '/logout-everywhere', end: endAllLike })
      engineRoutes(api, options)
      addRest(api, createConsoleAuth(options))
    },
    { prefix: '/console/api' },
  )
  await pageRoutes(app, questionsScript)
}

const tooManyLogins = 'Too many sign-in attempts from your network. Try again in a few seconds.'
const described = { auth: [], tag: 'Console', answers: { 200: single(consoleSessionSchema) } }

function loginRoute(app: FastifyInstance, options: ConsoleAuthOptions): void {
  endpoint(app, {
    ...described,
    route: 'POST /login',
    operationId: 'logInToConsole',
    summary: 'Begin a console session by the code of a link, or a secret key',
    body: loginBody,
    async run(request, { reply }) {
      const { code, secret_key: key = '' } = request.body
      if (!options.lookups.logins.spend(sourceOf(request.ip)))
        throw overBudget(1, { message: tooManyLogins })
      const login = await options.lookups.guesses.run([], () =>
        code === undefined ? logInByKey(options, key) : logInByCode(options, code),
      )
      options.lookups.valid.set(login.token, true)
      await endReplaced(request, options)
      setCookie(reply, { ...login, options })
      return answerOf(login, request, options)
    },
  })
}

// The browser forgets the token of the session before, so that nobody could end it.
async function endReplaced(request: FastifyRequest, options: ConsoleAuthOptions): Promise<void> {
  const token = cookieOf(request, siteOf(request, options.publicUrl))
  const replaced = token && (await consoleSessionOf(options, token).catch(() => undefined))
  if (replaced) await endSession(options.pool, { id: replaced.id, now: options.clock() })
}

function sessionRoute(app: FastifyInstance, options: ConsoleAuthOptions): void {
  endpoint(app, {
    ...described,
    route: 'GET /session',
    operationId: 'getConsoleSession',
    summary: 'Who is logged in',
    run: async (request) => answerOf(await loggedIn(request, options), request, options),
  })
}

function answerOf(
  { token, session }: LoggedIn,
  request: FastifyRequest,
  options: ConsoleAuthOptions,
) {
  const warnings = [options.missingProxy?.warning(request) ?? []].flat()
  const csrf_token = csrfTokenOf(token)
  return { data: consoleSessionJson(session, { csrf_token, api_url: options.publicUrl, warnings }) }
}

interface Logout {
  path: '/logout' | '/logout-everywhere'
  end: typeof endSession
}

function logoutRoute(
  app: FastifyInstance,
  options: ConsoleAuthOptions,
  { path, end }: Logout,
): void {
  endpoint(app, {
    ...described,
    route: `POST ${path}`,
    operationId: `leaveConsole${path}`,
    summary: 'End this session, or all of this person',
    answers: { 200: single(z.null()) },
    async run(request, { reply }) {
      const { session } = await loggedIn(request, options)
      await end(options.pool, { id: session.id, now: options.clock() })
      setCookie(reply, { token: '', options })
      return { data: null }
    },
  })
}

function setCookie(
  reply: FastifyReply,
  { token, options }: { token: string; options: ConsoleAuthOptions },
): void {
  const { name, secure } = siteOf(reply.request, options.publicUrl).cookie
  const maxAge = token === '' ? 0 : longestMs / 1000
  const attributes = { path: '/', httpOnly: true, secure, sameSite: 'lax', maxAge } as const
  reply.header('set-cookie', stringifySetCookie({ name, value: token, ...attributes }))
}
