import { stringifySetCookie } from 'cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Auth } from '../../infra/access/auth.ts'
import { rateLimitError } from '../../infra/access/budget.ts'
import { sourceOf } from '../../infra/access/source.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { single } from '../../infra/http/schemas.ts'
import {
  type ConsoleAuthOptions,
  cookieOf,
  createConsoleAuth,
  createLookups,
  requireLogin,
} from './auth.ts'
import {
  authenticateToken,
  type ConsoleLogin,
  csrfTokenOf,
  logInByCode,
  logInByKey,
} from './commands.ts'
import { maxSessionMs } from './decide.ts'
import { type EngineOptions, engineRoutes } from './engines.ts'
import { pageRoutes } from './page-routes.ts'
import { consoleSessionJson, consoleSessionSchema, loginBody } from './schemas.ts'
import { checkSameOrigin, isMutation, siteOf } from './site.ts'
import { revokeAllForUser, revokeSession } from './store.ts'

export interface ConsoleOptions extends Omit<EngineOptions, 'lookups'> {
  /** Source of the module that answers questions about a browser engine. */
  questionsScript: () => Promise<string>
  /** Adds the REST API routes; they are mounted below `/console/api`. */
  addRest: (app: FastifyInstance, auth: Auth) => void
}

/** Serves the console at `/console` and its API below `/console/api`. The OpenAPI document leaves both out. */
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
        if (isMutation(request)) checkSameOrigin(site, request)
      })
      loginRoute(api, options)
      sessionRoute(api, options)
      logoutRoute(api, options, { path: '/logout', revoke: revokeSession })
      logoutRoute(api, options, { path: '/logout-everywhere', revoke: revokeAllForUser })
      engineRoutes(api, options)
      addRest(api, createConsoleAuth(options))
    },
    { prefix: '/console/api' },
  )
  await pageRoutes(app, questionsScript)
}

const tooManyLogins = 'Too many sign-in attempts from your network. Try again in a few seconds.'
const routeDefaults = { auth: [], tag: 'Console', answers: { 200: single(consoleSessionSchema) } }

function loginRoute(app: FastifyInstance, options: ConsoleAuthOptions): void {
  endpoint(app, {
    ...routeDefaults,
    route: 'POST /login',
    operationId: 'logInToConsole',
    summary: 'Begin a console session by the code of a link, or a secret key',
    body: loginBody,
    async run(request, { reply }) {
      const { code, secret_key: key = '' } = request.body
      if (!options.lookups.logins.spend(sourceOf(request.ip)))
        throw rateLimitError(1, { message: tooManyLogins })
      const login = await options.lookups.lookupLimit.run([], () =>
        code === undefined ? logInByKey(options, key) : logInByCode(options, code),
      )
      options.lookups.validTokens.set(login.token, true)
      await revokePreviousSession(request, options)
      setCookie(reply, { ...login, options })
      return sessionResponse(login, request, options)
    },
  })
}

// The new cookie overwrites the old token, so nobody could sign out of the previous session any more.
async function revokePreviousSession(
  request: FastifyRequest,
  options: ConsoleAuthOptions,
): Promise<void> {
  const token = cookieOf(request, siteOf(request, options.publicUrl))
  const previous = token && (await authenticateToken(options, token).catch(() => undefined))
  if (previous) await revokeSession(options.pool, { id: previous.id, now: options.clock() })
}

function sessionRoute(app: FastifyInstance, options: ConsoleAuthOptions): void {
  endpoint(app, {
    ...routeDefaults,
    route: 'GET /session',
    operationId: 'getConsoleSession',
    summary: 'Who is logged in',
    run: async (request) => sessionResponse(await requireLogin(request, options), request, options),
  })
}

function sessionResponse(
  { token, session }: ConsoleLogin,
  request: FastifyRequest,
  options: ConsoleAuthOptions,
) {
  const warnings = [options.missingProxy?.warning(request) ?? []].flat()
  const csrf_token = csrfTokenOf(token)
  return { data: consoleSessionJson(session, { csrf_token, api_url: options.publicUrl, warnings }) }
}

interface Logout {
  path: '/logout' | '/logout-everywhere'
  revoke: typeof revokeSession
}

function logoutRoute(
  app: FastifyInstance,
  options: ConsoleAuthOptions,
  { path, revoke }: Logout,
): void {
  endpoint(app, {
    ...routeDefaults,
    route: `POST ${path}`,
    operationId: `leaveConsole${path}`,
    summary: 'End this session, or all of this person',
    answers: { 200: single(z.null()) },
    async run(request, { reply }) {
      const { session } = await requireLogin(request, options)
      await revoke(options.pool, { id: session.id, now: options.clock() })
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
  const maxAge = token === '' ? 0 : maxSessionMs / 1000
  const attributes = { path: '/', httpOnly: true, secure, sameSite: 'lax', maxAge } as const
  reply.header('set-cookie', stringifySetCookie({ name, value: token, ...attributes }))
}
