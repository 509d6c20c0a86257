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
  createConsoleAuth,
  createLoginLimits,
  requireLogin,
  tokenIn,
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
import { peopleRoutes } from './people.ts'
import { consoleSessionJson, consoleSessionSchema, loginBody } from './schemas.ts'
import { checkSameOrigin, isMutation, requireSecureSite } from './site.ts'
import { endSession, revokeAllForUser } from './store.ts'

export interface ConsoleOptions extends Omit<EngineOptions, 'limits'> {
  /** Source of the module that answers questions about a browser engine. */
  questionsScript: () => Promise<string>
  /** Adds the REST API routes to `app`, with `/console/api` as their prefix. */
  addRest: (app: FastifyInstance, auth: Auth) => void
}

/** Serves the console at `/console` and its API below `/console/api`. The OpenAPI document leaves both out. */
export async function consoleRoutes(
  app: FastifyInstance,
  { addRest, questionsScript, ...rest }: ConsoleOptions,
): Promise<void> {
  const options = { ...rest, limits: createLoginLimits(rest) }
  await app.register(
    async (api) => {
      api.addHook('onRoute', (route) => {
        route.schema = { ...route.schema, hide: true }
      })
      api.addHook('onRequest', async (request, reply) => {
        reply.header('cache-control', 'no-store')
        const site = requireSecureSite(request, options.publicUrl)
        if (isMutation(request)) checkSameOrigin(site, request)
      })
      loginRoute(api, options)
      sessionRoute(api, options)
      logoutRoute(api, options, { path: '/logout', revoke: endSession })
      logoutRoute(api, options, { path: '/logout-everywhere', revoke: revokeAllForUser })
      engineRoutes(api, options)
      peopleRoutes(api, options)
      addRest(api, createConsoleAuth(options))
    },
    { prefix: '/console/api' },
  )
  await pageRoutes(app, questionsScript)
}

const tooManyLogins = 'Too many sign-in attempts from your network. Try again in a few seconds.'
const routeDefaults = { auth: [], tag: 'Console', responses: { 200: single(consoleSessionSchema) } }

function loginRoute(app: FastifyInstance, options: ConsoleAuthOptions): void {
  endpoint(app, {
    ...routeDefaults,
    route: 'POST /login',
    operationId: 'logInToConsole',
    summary: 'Sign in with the code of a login link, or with a secret key',
    body: loginBody,
    async run(request, { reply }) {
      const { code, secret_key: key = '' } = request.body
      if (!options.limits.loginBudget.spend(sourceOf(request.ip)))
        throw rateLimitError(1, { message: tooManyLogins })
      const login = await options.limits.lookupLimit.run([], () =>
        code === undefined ? logInByKey(options, key) : logInByCode(options, code),
      )
      options.limits.validTokens.set(login.token, true)
      await revokePreviousSession(request, options)
      setCookie(reply, { ...login, options })
      return sessionResponse(login, request, options)
    },
  })
}

// The new cookie overwrites the old token, so nobody could sign out of the previous session later.
async function revokePreviousSession(
  request: FastifyRequest,
  options: ConsoleAuthOptions,
): Promise<void> {
  const token = tokenIn(request, requireSecureSite(request, options.publicUrl))
  const previous = token && (await authenticateToken(options, token).catch(() => undefined))
  if (previous) await endSession(options.pool, previous, { id: previous.id, now: options.clock() })
}

function sessionRoute(app: FastifyInstance, options: ConsoleAuthOptions): void {
  endpoint(app, {
    ...routeDefaults,
    route: 'GET /session',
    operationId: 'getConsoleSession',
    summary: 'Get the current console session',
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

interface LogoutRoute {
  path: '/logout' | '/logout-everywhere'
  revoke: typeof endSession | typeof revokeAllForUser
}

function logoutRoute(
  app: FastifyInstance,
  options: ConsoleAuthOptions,
  { path, revoke }: LogoutRoute,
): void {
  endpoint(app, {
    ...routeDefaults,
    route: `POST ${path}`,
    operationId: `leaveConsole${path}`,
    summary: 'Sign out, here or everywhere',
    responses: { 200: single(z.null()) },
    async run(request, { reply }) {
      const { session } = await requireLogin(request, options)
      await revoke(options.pool, session, { id: session.id, now: options.clock() })
      setCookie(reply, { token: '', options })
      return { data: null }
    },
  })
}

function setCookie(
  reply: FastifyReply,
  { token, options }: { token: string; options: ConsoleAuthOptions },
): void {
  const { name, secure } = requireSecureSite(reply.request, options.publicUrl).cookie
  const maxAge = token === '' ? 0 : maxSessionMs / 1000
  const attributes = { path: '/', httpOnly: true, secure, sameSite: 'lax', maxAge } as const
  reply.header('set-cookie', stringifySetCookie({ name, value: token, ...attributes }))
}
