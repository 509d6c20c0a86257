import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { unavailable } from '../../infra/errors/errors.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { pathId, single } from '../../infra/http/schemas.ts'
import { type CommandRouteOptions, commandDeps } from '../../infra/idempotency/idempotency.ts'
import { isId } from '../../infra/ids.ts'
import type { StoredMark } from '../../projections/sessions/tables.ts'
import { markSessions, priceOfMarking, priceOfUnmarking, unmarkSessions } from './commands.ts'
import { maxMarked, noSuchMark } from './decide.ts'
import { markBody, markJson, markSchema, targetOf } from './schemas.ts'

const tag = 'Sessions'
const requires =
  'Requires the `sessions:mark` secret-key scope. Costs one unit per 100 sessions, rounded up.'

/** `POST /v1/marks` and `DELETE /v1/marks/{markId}`. */
export function markRoutes(app: FastifyInstance, options: CommandRouteOptions): void {
  markRoute(app, options)
  unmarkRoute(app, options)
}

function markRoute(app: FastifyInstance, options: CommandRouteOptions): void {
  const { pool, auth, idempotency } = options
  endpoint(app, {
    route: 'POST /v1/marks',
    auth: auth.requireSecret('sessions:mark'),
    operationId: 'markSessions',
    tag,
    summary: 'Label sessions',
    description: `${requires} A session's newest mark is in effect. Fails without marking anything if there are more than ${maxMarked} sessions or one is unknown. Sessions that already have this label and reason keep their mark; if all do, the newest of their marks is returned.`,
    body: markBody,
    answers: { 201: single(markSchema) },
    run(request, { reply, answer }) {
      const scope = auth.scope(request)
      const { label, reason = null, ...targetBody } = request.body
      const target = targetOf(targetBody)
      return idempotency.run({ request, reply }, async (command) => {
        const cost = await priceOfMarking(pool, scope, target)
        await auth.charge(request, { reply, cost })
        const deps = { ...commandDeps(options, request, command), pool }
        const rows = await markSessions(deps, { scope, label, reason, target })
        return answer({ data: markData(rows) })
      })
    },
  })
}

function unmarkRoute(app: FastifyInstance, options: CommandRouteOptions): void {
  const { pool, auth } = options
  endpoint(app, {
    route: 'DELETE /v1/marks/:markId',
    auth: auth.requireSecret('sessions:mark'),
    operationId: 'deleteMark',
    tag,
    summary: 'Delete a label',
    description: `${requires} Removes the mark from all its sessions, whose previous marks take effect again. Returns the deleted mark.`,
    params: z.object({ markId: pathId('mrk') }),
    noBody: 'session_mark_delete',
    answers: { 200: single(markSchema) },
    errors: [404],
    async run(request, { reply }) {
      const { markId } = request.params
      if (!isId('mrk', markId)) throw noSuchMark()
      const scope = auth.scope(request)
      await auth.charge(request, { reply, cost: await priceOfUnmarking(pool, scope, markId) })
      return {
        data: markData(await unmarkSessions(commandDeps(options, request), { scope, markId })),
      }
    },
  })
}

function markData(rows: StoredMark[]): z.output<typeof markSchema> {
  const [first] = rows
  if (first) return markJson(first, rows.length)
  throw unavailable(new Error('the mark is not readable'))
}
