import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import type pg from 'pg'
import { z } from 'zod'
import type { Auth } from '../../infra/access/auth.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import {
  type Cursors,
  createCursors,
  loadPage,
  pageQuery,
  refuseOffset,
} from '../../infra/http/pagination.ts'
import { errorResponses, list, pathId, single } from '../../infra/http/schemas.ts'
import { type Clock, idPattern, isId, isLegacyId, legacyIdPattern, type Random } from '../../infra/ids.ts'
import { findMergedInto } from '../../projections/corrections/projection.ts'
import { verdict } from '../../projections/sessions/decision-schemas.ts'
import { listSessions } from '../../projections/sessions/list-sessions.ts'
import {
  findSession,
  findVisitor,
  listVisitors,
  type SessionDetailRow,
  type VisitorRow,
} from '../../projections/sessions/queries.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { sessionDetailJson, sessionSummary, visitorDetail, visitorSummary } from './answers.ts'
import { clientUserIdInput, updateClientUser } from './client-user.ts'
import { visitorDetailSchema, visitorSummarySchema } from './schemas/fingerprints.ts'
import type { Identification } from './schemas/identification.ts'
import { sessionDetailSchema, sessionSummarySchema } from './schemas/sessions.ts'

interface ReadbackOptions {
  pool: pg.Pool
  decideAs: DecideAs
  auth: Auth
  // null = nothing is known of how the session came to a visitor.
  identify(sessionId: string): Promise<Identification | null>
  keyring: Keyring
  clock: Clock
  random: Random
}

interface ReadbackContext extends ReadbackOptions {
  cursors: Cursors
  // Whose data the request may see.
  scopeOf(request: FastifyRequest): DataScope
}

/** `GET /v1/sessions`, `GET` and `PATCH /v1/sessions/{sessionId}`, `GET /v1/fingerprints`, `GET /v1/fingerprints/{visitorId}`. */
export function readbackRoutes(app: FastifyInstance, options: ReadbackOptions): void {
  const context: ReadbackContext = {
    ...options,
    cursors: createCursors(options),
    scopeOf(request) {
      const { organizationId, environment } = options.auth.secret(request)
      return { organizationId, environment }
    },
  }
  sessionRoutes(app, context)
  fingerprintRoutes(app, context)
}

const sessionTags = ['Sessions']
const sessionParams = z.object({
  sessionId: z
    .string()
    .transform((id) => (isLegacyId(id) ? id.toLowerCase() : id))
    .meta({ pattern: `${idPattern('sid')}|${legacyIdPattern}` }),
})
const sessionsQuery = z.object({
  ...pageQuery,
  // Not the registered schema itself: the description would list it twice, as input and as output.
  verdict: z.enum(verdict.options).optional(),
  search: z
    .string()
    .optional()
    .describe(
      'A sid_, evt_ or vid_ id (or a legacy 32-digit hexadecimal one) matches exactly, ignoring case; anything else is looked for in ids, client_user_id, page URL (also as people read it), user agent and IP address.',
    ),
})
const updateBody = z.strictObject({ client_user_id: clientUserIdInput.nullable() })

function sessionRoutes(app: FastifyInstance, context: ReadbackContext): void {
  listSessionsRoute(app, context)
  getSessionRoute(app, context)
  updateSessionRoute(app, context)
}

function listSessionsRoute(app: FastifyInstance, { pool, auth, cursors, scopeOf }: ReadbackContext): void {
  const schema = {
    operationId: 'listSessions',
    summary: 'List sessions, newest decision first',
    description: 'Requires the `sessions:list` secret-key scope.',
    tags: sessionTags,
    security: [{ secretKey: [] }],
    querystring: sessionsQuery,
    response: { 200: list(sessionSummarySchema), ...errorResponses(401, 403, 422) },
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

const detailQuery = z.object({
  include: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .describe(
      '`identification`: why the session, or a visitor’s newest one, is of its visitor. Anything else adds nothing.',
    ),
})

interface DetailQuery {
  Querystring: z.output<typeof detailQuery>
}

// It changes as visitors come and go, and takes as long as the rest.
const asksWhy = ({ include }: z.output<typeof detailQuery>) => [include].flat().includes('identification')

function getSessionRoute(app: FastifyInstance, context: ReadbackContext): void {
  const { pool, auth, identify, scopeOf } = context
  const schema = {
    operationId: 'getSession',
    summary: 'Retrieve one session',
    description: 'Requires the `sessions:read` secret-key scope.',
    tags: sessionTags,
    security: [{ secretKey: [] }],
    params: sessionParams,
    querystring: detailQuery,
    response: { 200: single(sessionDetailSchema), ...errorResponses(401, 403, 404) },
  }
  const onRequest = auth.requireSecret('sessions:read')
  app.get<Params & DetailQuery>('/v1/sessions/:sessionId', { schema, onRequest }, async (request, reply) => {
    const { sessionId } = request.params
    const row = await sessionOr404({ pool, scope: scopeOf(request), sessionId })
    const identification = asksWhy(request.query) ? row.visitor && (await identify(row.id)) : undefined
    return sendDetail({ request, reply, row }, identification)
  })
}

function updateSessionRoute(app: FastifyInstance, context: ReadbackContext): void {
  const { pool, auth, decideAs, clock, random, scopeOf } = context
  const schema = {
    operationId: 'updateSession',
    summary: 'Set or clear the client user id of a session',
    description: 'Requires the `sessions:update` secret-key scope.',
    tags: sessionTags,
    security: [{ secretKey: [] }],
    params: sessionParams,
    body: updateBody,
    response: { 200: single(sessionDetailSchema), ...errorResponses(400, 401, 403, 404, 413, 415, 422) },
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
      const decide = decideAs(auth.actor(request), request)
      const { client_user_id: clientUserId } = request.body
      await updateClientUser({ decide, clock, random }, { scope, sessionId, clientUserId })
      return sendDetail({ request, reply, row: await sessionOr404({ pool, scope, sessionId }) })
    },
  )
}

interface Params {
  Params: z.output<typeof sessionParams>
}

interface Update {
  Body: z.output<typeof updateBody>
}

interface Detail {
  request: FastifyRequest
  reply: FastifyReply
  row: SessionDetailRow
}

function sendDetail({ request, reply, row }: Detail, identification?: Identification | null): FastifyReply {
  const body = sessionDetailJson(row, { identification, requestId: request.id })
  return reply.type('application/json; charset=utf-8').send(body)
}

interface Wanted {
  pool: ReadbackContext['pool']
  scope: DataScope
  sessionId: string
}

// 404 alike for an id that is malformed, unknown, or of another organization or environment.
async function sessionOr404({ pool, scope, sessionId }: Wanted): Promise<SessionDetailRow> {
  const possible = isId('sid', sessionId) || isLegacyId(sessionId)
  const row = possible ? await findSession(pool, scope, sessionId) : undefined
  if (row) return row
  throw new ApiError('request.not_found', { message: 'No session with this id exists in this environment.' })
}

const fingerprintTags = ['Visitor fingerprints']
const visitorSort = z.enum(['seen_count', 'first_seen']).optional()
const fingerprintsQuery = z.object({
  ...pageQuery,
  search: z
    .string()
    .optional()
    .describe('A vid_ id matches exactly; anything else is looked for in id, user agent and IP address.'),
  sort: visitorSort.describe('Largest or newest first; without it, seen most recently first.'),
})

function fingerprintRoutes(app: FastifyInstance, context: ReadbackContext): void {
  listFingerprintsRoute(app, context)
  getFingerprintRoute(app, context)
}

function listFingerprintsRoute(
  app: FastifyInstance,
  { pool, auth, cursors, scopeOf }: ReadbackContext,
): void {
  const schema = {
    operationId: 'listVisitorFingerprints',
    summary: 'List visitor fingerprints',
    description: 'Requires the `fingerprints:list` secret-key scope.',
    tags: fingerprintTags,
    security: [{ secretKey: [] }],
    querystring: fingerprintsQuery,
    response: { 200: list(visitorSummarySchema), ...errorResponses(401, 403, 422) },
  }
  const hooks = { onRequest: auth.requireSecret('fingerprints:list'), preValidation: refuseOffset }
  app.withTypeProvider<ZodTypeProvider>().get('/v1/fingerprints', { schema, ...hooks }, async (request) => {
    const { limit, cursor, sort, search } = request.query
    const scope = scopeOf(request)
    const { rows, pagination } = await loadPage({
      limit,
      cursor,
      cursors,
      query: { list: 'fingerprints', ...scope, sort: sort ?? null, search: search || null },
      load: (after) => listVisitors(pool, scope, { limit, sort, search, after }),
      positionOf: (row) => ({ value: sortedBy(row, sort), id: row.id }),
    })
    return { data: rows.map(visitorSummary), pagination, meta: { request_id: request.id } }
  })
}

function sortedBy(row: VisitorRow, by: z.output<typeof visitorSort>): number {
  if (by === 'seen_count') return row.seen_count
  return by === 'first_seen' ? row.first_seen_at : row.last_seen_at
}

function getFingerprintRoute(app: FastifyInstance, { pool, auth, identify, scopeOf }: ReadbackContext): void {
  const schema = {
    operationId: 'getVisitorFingerprint',
    summary: 'Retrieve one visitor fingerprint',
    description: 'Requires the `fingerprints:read` secret-key scope.',
    tags: fingerprintTags,
    security: [{ secretKey: [] }],
    params: z.object({ visitorId: pathId('vid') }),
    querystring: detailQuery,
    response: { 200: single(visitorDetailSchema), ...errorResponses(401, 403, 404) },
  }
  const onRequest = auth.requireSecret('fingerprints:read')
  app
    .withTypeProvider<ZodTypeProvider>()
    .get('/v1/fingerprints/:visitorId', { schema, onRequest }, async (request) => {
      const { visitorId } = request.params
      const row = isId('vid', visitorId) ? await findVisitor(pool, scopeOf(request), visitorId) : undefined
      if (!row) throw await noSuchVisitor(pool, scopeOf(request), visitorId)
      const [newest] = row.activity
      const why = asksWhy(request.query) && {
        identification: newest ? await identify(newest.session_id) : null,
      }
      return { data: { ...visitorDetail(row), ...why }, meta: { request_id: request.id } }
    })
}

/** Whoever has kept the id of a visitor that was merged since learns where it went, as long as that one is there. */
async function noSuchVisitor(pool: pg.Pool, scope: DataScope, visitorId: string): Promise<ApiError> {
  const into = isId('vid', visitorId) ? await findMergedInto(pool, scope, visitorId) : undefined
  const isThere =
    into !== undefined && isId('vid', into) && (await findVisitor(pool, scope, into)) !== undefined
  return new ApiError('request.not_found', {
    message: 'No visitor fingerprint with this id was observed in this environment.',
    ...(isThere && { details: { merged_into: into } }),
  })
}
