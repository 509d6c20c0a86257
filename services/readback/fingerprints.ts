import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ApiError } from '../../infra/errors/errors.ts'
import { loadPage, pageQuery, refuseOffset } from '../../infra/http/pagination.ts'
import { errorResponses, list, single } from '../../infra/http/schemas.ts'
import { isId } from '../../infra/ids.ts'
import { findVisitor, listVisitors, type VisitorRow } from '../../projections/sessions/queries.ts'
import { visitorDetail, visitorSummary } from './fingerprint-shape.ts'
import type { ReadbackContext } from './routes.ts'
import { visitorDetail as detailSchema, visitorSummary as summarySchema } from './schemas/fingerprint.ts'

const tags = ['Visitor fingerprints']
const security = [{ secretKey: [] }]
const sort = z.enum(['seen_count', 'first_seen']).optional()
const listQuery = z.object({
  ...pageQuery,
  search: z
    .string()
    .optional()
    .describe('A vid_ id matches exactly; anything else is looked for in id, user agent and IP address.'),
  sort: sort.describe('Largest or newest first; without it, seen most recently first.'),
})

export function fingerprintRoutes(app: FastifyInstance, context: ReadbackContext): void {
  listRoute(app, context)
  getRoute(app, context)
}

function listRoute(app: FastifyInstance, { pool, auth, cursors, scopeOf }: ReadbackContext): void {
  const schema = {
    operationId: 'listVisitorFingerprints',
    summary: 'List visitor fingerprints',
    description: 'Requires the `fingerprints:list` secret-key scope.',
    tags,
    security,
    querystring: listQuery,
    response: { 200: list(summarySchema), ...errorResponses(401, 403, 422) },
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

function sortedBy(row: VisitorRow, by: z.output<typeof sort>): number {
  if (by === 'seen_count') return row.seen_count
  return by === 'first_seen' ? row.first_seen_at : row.last_seen_at
}

function getRoute(app: FastifyInstance, { pool, auth, scopeOf }: ReadbackContext): void {
  const schema = {
    operationId: 'getVisitorFingerprint',
    summary: 'Retrieve one visitor fingerprint',
    description: 'Requires the `fingerprints:read` secret-key scope.',
    tags,
    security,
    params: z.object({ visitorId: z.string() }),
    response: { 200: single(detailSchema), ...errorResponses(401, 403, 404) },
  }
  const onRequest = auth.requireSecret('fingerprints:read')
  app
    .withTypeProvider<ZodTypeProvider>()
    .get('/v1/fingerprints/:visitorId', { schema, onRequest }, async (request) => {
      const { visitorId } = request.params
      const row = isId('vid', visitorId) ? await findVisitor(pool, scopeOf(request), visitorId) : undefined
      if (row) return { data: visitorDetail(row), meta: { request_id: request.id } }
      throw new ApiError('request.not_found', {
        message: 'No visitor fingerprint with this id was observed in this environment.',
      })
    })
}
