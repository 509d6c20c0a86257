import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { ApiError } from '../../infra/errors/errors.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { single } from '../../infra/http/schemas.ts'
import { iso } from '../../infra/iso.ts'
import { type ConsoleAuthOptions, requireAdministrator } from './auth.ts'
import { createLoginLink } from './commands.ts'
import { codeLifetimeMs, consoleRefusedError } from './decide.ts'
import { loginLinkBody, loginLinkSchema, openSessionSchema } from './schemas.ts'
import { endSession, listOpenSessions } from './store.ts'

const routeDefaults = { auth: [], tag: 'Console' }

/** Adds routes for administrators: open console sessions, and login links. */
export function peopleRoutes(app: FastifyInstance, options: ConsoleAuthOptions): void {
  const { pool, clock } = options

  endpoint(app, {
    ...routeDefaults,
    responses: { 200: single(z.array(openSessionSchema)) },
    route: 'GET /people',
    operationId: 'listConsoleSessions',
    summary: 'List the open console sessions',
    async run(request) {
      const caller = await requireAdministrator(request, options, 'see who is signed in')
      const rows = await listOpenSessions(pool, caller, clock())
      const data = rows.map(({ id, name, role, environments, created_at, last_used_at }) => ({
        id,
        name,
        role,
        environments,
        created_at: iso(created_at),
        last_used_at: iso(last_used_at),
        is_current: id === caller.id,
      }))
      return { data }
    },
  })

  endpoint(app, {
    ...routeDefaults,
    params: z.object({ id: z.string() }),
    responses: { 200: single(z.null()) },
    route: 'DELETE /people/:id',
    operationId: 'endConsoleSession',
    summary: 'End a console session',
    async run(request) {
      const caller = await requireAdministrator(request, options, 'end sessions')
      const { id } = request.params
      if (!(await endSession(pool, caller, { id, now: clock() })))
        throw new ApiError('request.not_found', { message: 'No open session has this id.' })
      request.log.info({ console_session_id: id, ended_by: caller.id }, 'console session ended')
      return { data: null }
    },
  })

  endpoint(app, {
    ...routeDefaults,
    body: loginLinkBody,
    responses: { 200: single(loginLinkSchema) },
    route: 'POST /login-links',
    operationId: 'createLoginLink',
    summary: 'Create a one-time login link',
    async run(request) {
      const caller = await requireAdministrator(request, options, 'create login links')
      const { name, role, environments } = request.body
      if (!environments.every((environment) => caller.environments.includes(environment)))
        throw consoleRefusedError('You can only give access to environments that you have.')
      const organizationId = caller.organization.id
      const link = { organizationId, name, role, environments: [...new Set(environments)] }
      const path = await createLoginLink(options, { ...link, consoleUrl: '' })
      request.log.info({ role, created_by: caller.id }, 'login link created')
      return { data: { path, expires_at: iso(clock() + codeLifetimeMs) } }
    },
  })
}
