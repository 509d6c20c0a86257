import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ApiError } from '../../infra/errors/errors.ts'
import { loadPage, pageQuery, refuseOffset } from '../../infra/http/pagination.ts'
import { errorResponses, list, single } from '../../infra/http/schemas.ts'
import { isId, isLegacyId } from '../../infra/ids.ts'
import { verdict } from '../../projections/sessions/decision-shape.ts'
import {
  findSession,
  listSessions,
  type Scope,
  type SessionDetailRow,
} from '../../projections/sessions/queries.ts'
import { clientUserIdInput } from './client-user.ts'
import type { ReadbackContext } from './routes.ts'
import { sessionDetail as detailSchema } from './schemas/session-detail.ts'
import { sessionSummary as summarySchema } from './schemas/session-summary.ts'
import { sessionDetailJson } from './session-json.ts'
import { sessionSummary } from './session-shape.ts'
import { updateClientUser } from './update-client-user.ts'

const tags = ['Sessions']
const security = [{ secretKey: [] }]
const params = z.object({
  sessionId: z.string().transform((id) => (isLegacyId(id) ? id.toLowerCase() : id)),
})
const listQuery = z.object({
  ...pageQuery,
  // Not the registered schema itself: the description would list it twice, as input and as output.
  verdict: z.enum(verdict.options).optional(),
  search: z
    .string()
    .optional()
    .describe(
      'A sid_, evt_ or vid_ id (or a legacy 32-digit hexadecimal one) matches exactly, ignoring case; anything else is looked for in ids, client_user_id, page URL, user agent and IP address.',
    ),
})
const updateBody = z.strictObject({ client_user_id: clientUserIdInput.nullable() })

export function sessionRoutes(app: FastifyInstance, context: ReadbackContext): void {
  listRoute(app, context)
  getRoute(app, context)
  updateRoute(app, context)
}

function listRoute(app: FastifyInstance, { pool, auth, cursors, scopeOf }: ReadbackContext): void {
  const schema = {
    operationId: 'listSessions',
    summary: 'List sessions, newest decision first',
    description: 'Requires the `sessions:list` secret-key scope.',
    tags,
    security,
    querystring: listQuery,
    response: { 200: list(summarySchema), ...errorResponses(401, 403, 422) },
  }
  const hooks = { onRequest: auth.requireSecret('sessions:list'), preValidation: refuseOffset }
  app.withTypeProvider<ZodTypeProvider>().get('/v1/sessions', { schema, ...hooks }, async (request) => {
    const { limit, cursor, verdict, search } = request.query
    const scope = scopeOf(request)
    const { rows, pagination } = await loadPage({
      limit,
      cursor,
      cursors,
      query: { list: 'sessions', ...scope, verdict: verdict ?? null, search: search || null },
      load: (after) =>
        listSessions(pool, scope, {
          limit,
          verdict,
          search,
          after: after && { evaluatedAt: after.value, id: after.id },
        }),
      positionOf: (row) => ({ value: row.latest_decision.evaluated_at, id: row.id }),
    })
    return { data: rows.map(sessionSummary), pagination, meta: { request_id: request.id } }
  })
}

function getRoute(app: FastifyInstance, { pool, auth, scopeOf }: ReadbackContext): void {
  const schema = {
    operationId: 'getSession',
    summary: 'Retrieve one session',
    description: 'Requires the `sessions:read` secret-key scope.',
    tags,
    security,
    params,
    response: { 200: single(detailSchema), ...errorResponses(401, 403, 404) },
  }
  const onRequest = auth.requireSecret('sessions:read')
  app.get<Params>('/v1/sessions/:sessionId', { schema, onRequest }, async (request, reply) => {
    const { sessionId } = request.params
    return sendDetail({
      request,
      reply,
      row: await sessionOr404({ pool, scope: scopeOf(request), sessionId }),
    })
  })
}

function updateRoute(app: FastifyInstance, context: ReadbackContext): void {
  const { pool, auth, scopeOf } = context
  const schema = {
    operationId: 'updateSession',
    summary: 'Set or clear the client user id of a session',
    description: 'Requires the `sessions:update` secret-key scope.',
    tags,
    security,
    params,
    body: updateBody,
    response: { 200: single(detailSchema), ...errorResponses(400, 401, 403, 404, 413, 415, 422) },
  }
  const onRequest = auth.requireSecret('sessions:update')
  const config = { parameterSet: 'session_update' }
  app.patch<Params & Update>(
    '/v1/sessions/:sessionId',
    { schema, onRequest, config },
    async (request, reply) => {
      const scope = scopeOf(request)
      const { sessionId } = request.params
      await sessionOr404({ pool, scope, sessionId })
      await updateClientUser(context, { scope, sessionId, clientUserId: request.body.client_user_id })
      return sendDetail({ request, reply, row: await sessionOr404({ pool, scope, sessionId }) })
    },
  )
}

interface Params {
  Params: z.output<typeof params>
}

interface Update {
  Body: z.output<typeof updateBody>
}

interface Detail {
  request: FastifyRequest
  reply: FastifyReply
  row: SessionDetailRow
}

function sendDetail({ request, reply, row }: Detail): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(sessionDetailJson(row, { requestId: request.id }))
}

interface Wanted {
  pool: ReadbackContext['pool']
  scope: Scope
  sessionId: string
}

/** 404 alike for an id that is malformed, unknown, or of another organization or environment. */
async function sessionOr404({ pool, scope, sessionId }: Wanted): Promise<SessionDetailRow> {
  const possible = isId('sid', sessionId) || isLegacyId(sessionId)
  const row = possible ? await findSession(pool, scope, sessionId) : undefined
  if (row) return row
  throw new ApiError('request.not_found', { message: 'No session with this id exists in this environment.' })
}
