import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { unavailable } from '../../infra/errors/errors.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { pathId, single } from '../../infra/http/schemas.ts'
import { type CommandRouteOptions, commandDeps } from '../../infra/idempotency/idempotency.ts'
import { isId } from '../../infra/ids.ts'
import type { StoredMark } from '../../projections/sessions/tables.ts'
import { markingCost, markSessions, unmarkingCost, unmarkSessions } from './commands.ts'
import { maxSessionsPerMark, noSuchMark } from './decide.ts'
import { markBody, markJson, markSchema, targetOf } from './schemas.ts'

const tag = 'Sessions'
const requirements =
  'Requires the `sessions:mark` secret-key scope. Costs one unit per 100 sessions, rounded up.'

/** Adds the routes that create and delete marks. */
export function markRoutes(app: FastifyInstance, options: CommandRouteOptions): void {
  createMarkRoute(app, options)
  deleteMarkRoute(app, options)
}

function createMarkRoute(app: FastifyInstance, options: CommandRouteOptions): void {
  const { pool, auth, idempotency } = options
  endpoint(app, {
    route: 'POST /v1/marks',
    auth: auth.requireSecret('sessions:mark'),
    operationId: 'markSessions',
    tag,
    summary: 'Label sessions',
    description: `${requirements} A session's newest mark is in effect. Fails without marking anything if there are more than ${maxSessionsPerMark} sessions or one is unknown. Sessions that already have this label and reason keep their mark; if all do, the newest of their marks is returned.`,
    body: markBody,
    responses: { 201: single(markSchema) },
    run(request, { reply, toResponse }) {
      const scope = auth.dataScope(request)
      const { label, reason = null, ...targetBody } = request.body
      const target = targetOf(targetBody)
      return idempotency.run({ request, reply }, async (command) => {
        const cost = await markingCost(pool, scope, target)
        await auth.raiseCharge(request, { reply, cost })
        const deps = { ...commandDeps(options, request, command), pool }
        const rows = await markSessions(deps, { scope, label, reason, target })
        return toResponse({ data: requireMark(rows) })
      })
    },
  })
}

function deleteMarkRoute(app: FastifyInstance, options: CommandRouteOptions): void {
  const { pool, auth } = options
  endpoint(app, {
    route: 'DELETE /v1/marks/:markId',
    auth: auth.requireSecret('sessions:mark'),
    operationId: 'deleteMark',
    tag,
    summary: 'Delete a mark',
    description: `${requirements} Removes the mark from all its sessions, whose previous marks take effect again. Returns the deleted mark.`,
    params: z.object({ markId: pathId('mrk') }),
    rejectBodyAs: 'session_mark_delete',
    responses: { 200: single(markSchema) },
    errors: [404],
    async run(request, { reply }) {
      const { markId } = request.params
      if (!isId('mrk', markId)) throw noSuchMark()
      const scope = auth.dataScope(request)
      await auth.raiseCharge(request, { reply, cost: await unmarkingCost(pool, scope, markId) })
      return {
        data: requireMark(await unmarkSessions(commandDeps(options, request), { scope, markId })),
      }
    },
  })
}

function requireMark(rows: StoredMark[]): z.output<typeof markSchema> {
  const [first] = rows
  if (first) return markJson(first, rows.length)
  throw unavailable(new Error('the mark has not reached the read model yet'))
}
