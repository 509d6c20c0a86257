import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { ApiError } from '../../infra/errors/errors.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { createCursors, loadPage, pageQuery, refuseOffset } from '../../infra/http/pagination.ts'
import { list, pathId, single } from '../../infra/http/schemas.ts'
import { idPattern, isId, isLegacyId, legacyIdPattern } from '../../infra/ids.ts'
import { iso } from '../../infra/iso.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { findMergedInto } from '../../projections/corrections/projection.ts'
import { findErasure } from '../../projections/erasures/queries.ts'
import { clientUserIdInput } from '../../projections/sessions/decision-schemas.ts'
import { sessionFacts } from '../../projections/sessions/facts.ts'
import {
  findLatestSessions,
  findSession,
  findVisitor,
  listVisitors,
  type SessionDetailRow,
  type VisitorRow,
} from '../../projections/sessions/queries.ts'
import { countRelated, type RelatedCount } from '../../projections/sessions/related.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { findTimeline } from '../../projections/sessions/timeline.ts'
import { aggregatesRoute } from './aggregates-route.ts'
import { anomaliesRoute } from './anomalies-route.ts'
import { updateClientUser } from './client-user.ts'
import { sessionsRoute } from './list-route.ts'
import type { ReadbackOptions } from './options.ts'
import { includeParameter, isIncluded } from './options.ts'
import { sessionDetail, visitorDetail, visitorSummary } from './responses.ts'
import { visitorDetailSchema, visitorSummarySchema } from './schemas/fingerprints.ts'
import { sessionDetailSchema } from './schemas/sessions.ts'

export function readbackRoutes(app: FastifyInstance, options: ReadbackOptions): void {
  sessionsRoute(app, options)
  aggregatesRoute(app, options)
  anomaliesRoute(app, options)
  getSessionRoute(app, options)
  updateSessionRoute(app, options)
  listFingerprintsRoute(app, options)
  getFingerprintRoute(app, options)
}

const sessionsTag = 'Sessions'
const sessionParams = z.object({
  sessionId: z
    .string()
    .transform((id) => (isLegacyId(id) ? id.toLowerCase() : id))
    .meta({ pattern: `${idPattern('sid')}|${legacyIdPattern}` }),
})
const sessionQuery = z.object({
  include: includeParameter(
    'Additional members: `identification` (how the session was matched to its visitor), `score` (score breakdown), `log` (position of the decision on the log), `timeline` (what happened, in order), `related` (counts of sessions that share a value).',
  ),
})
const visitorQuery = z.object({
  include: includeParameter(
    'Additional members: `identification` (how the newest session was matched to the visitor).',
  ),
})

function getSessionRoute(app: FastifyInstance, options: ReadbackOptions): void {
  const { pool, auth, explainMatch, explainScore, findDocuments, readLimiter, clock } = options
  endpoint(app, {
    readLimiter,
    route: 'GET /v1/sessions/:sessionId',
    auth: auth.requireSecret('sessions:read'),
    operationId: 'getSession',
    tag: sessionsTag,
    summary: 'Retrieve a session',
    description: `Requires the \`sessions:read\` secret-key scope. Costs one unit; ${relatedCost} with \`include=related\`.`,
    params: sessionParams,
    query: sessionQuery,
    responses: { 200: single(sessionDetailSchema) },
    errors: [404],
    async run(request, { reply }) {
      const scope = auth.dataScope(request)
      const { include } = request.query
      const withRelated = isIncluded(include, 'related')
      if (withRelated) await auth.raiseCharge(request, { reply, cost: relatedCost })
      const row = await requireSession(pool, scope, request.params.sessionId)
      // Computed only if requested, because it changes with other visitors and doubles the response time.
      const identification = isIncluded(include, 'identification')
        ? row.visitor && (await explainMatch(row.id))
        : undefined
      const score = isIncluded(include, 'score') ? await explainScore(row.detail) : undefined
      const withLogPosition = isIncluded(include, 'log')
      const timeline = isIncluded(include, 'timeline')
        ? await findTimeline(pool, row, await findDocuments(row.id))
        : undefined
      const related = withRelated ? await countRelatedTo(pool, scope, row, clock()) : undefined
      const extras = { identification, score, withLogPosition, timeline, related }
      return { data: sessionDetail(row, extras) }
    },
  })
}

// Units. The counts read up to fifty thousand index entries.
const relatedCost = 5

function countRelatedTo(
  pool: Db,
  scope: DataScope,
  { detail, visitor, client_user_id: clientUserId }: SessionDetailRow,
  now: number,
): Promise<RelatedCount[]> {
  const session = { ...sessionFacts(detail), visitorId: visitor?.id ?? null, clientUserId }
  return countRelated(pool, scope, { session, now })
}

function updateSessionRoute(app: FastifyInstance, options: ReadbackOptions): void {
  const { pool, auth, decideAs, clock, random } = options
  endpoint(app, {
    route: 'PATCH /v1/sessions/:sessionId',
    auth: auth.requireSecret('sessions:update'),
    operationId: 'updateSession',
    tag: sessionsTag,
    summary: "Set a session's user",
    description:
      'Requires the `sessions:update` secret-key scope. Attaches your id of the user, `client_user_id`, to the session; null removes it.',
    params: sessionParams,
    body: z.strictObject({ client_user_id: clientUserIdInput.nullable() }),
    parameterSet: 'session_update',
    responses: { 200: single(sessionDetailSchema) },
    errors: [404],
    async run(request) {
      const scope = auth.dataScope(request)
      const { sessionId } = request.params
      await requireSession(pool, scope, sessionId)
      const decide = decideAs(auth.actor(request), request)
      const { client_user_id: clientUserId } = request.body
      await updateClientUser({ decide, clock, random }, { ...scope, sessionId, clientUserId })
      return { data: sessionDetail(await requireSession(pool, scope, sessionId)) }
    },
  })
}

// Throws the same 404 for an id that is malformed, unknown, or from another organization or environment.
async function requireSession(
  pool: Db,
  scope: DataScope,
  sessionId: string,
): Promise<SessionDetailRow> {
  const isValid = isId('sid', sessionId) || isLegacyId(sessionId)
  const row = isValid ? await findSession(pool, scope, sessionId) : undefined
  if (row) return row
  throw new ApiError('request.not_found', {
    message: 'No session with this id exists in this environment.',
  })
}

const fingerprintsTag = 'Visitor fingerprints'
const visitorSort = z.enum(['seen_count', 'first_seen']).optional()

function listFingerprintsRoute(
  app: FastifyInstance,
  { pool, auth, keyring, readLimiter }: ReadbackOptions,
): void {
  const cursors = createCursors({ keyring })
  endpoint(app, {
    readLimiter,
    route: 'GET /v1/fingerprints',
    auth: auth.requireSecret('fingerprints:list'),
    operationId: 'listVisitorFingerprints',
    tag: fingerprintsTag,
    summary: 'List visitor fingerprints',
    description:
      'Requires the `fingerprints:list` secret-key scope. Most recently seen first, unless `sort` is set.',
    query: z.object({
      ...pageQuery,
      search: z
        .string()
        .optional()
        .describe(
          'Text to find in visitor id, user agent and IP address. A complete `vid_` id matches exactly.',
        ),
      sort: visitorSort.describe(
        '`seen_count`: most sessions first; `first_seen`: newest visitor first. Default: most recently seen first.',
      ),
      include: includeParameter(
        'Additional members: `latest_session` (newest session of each visitor).',
      ),
    }),
    beforeValidation: refuseOffset,
    responses: { 200: list(visitorSummarySchema) },
    errors: [422],
    async run(request) {
      const { limit, cursor, sort, search, include } = request.query
      const scope = auth.dataScope(request)
      const { rows, pagination } = await loadPage({
        limit,
        cursor,
        cursors,
        query: { list: 'fingerprints', ...scope, sort: sort ?? null, search: search || null },
        load: (after) => listVisitors(pool, scope, { limit, sort, search, after }),
        positionOf: (row) => ({ value: sortValue(row, sort), id: row.id }),
      })
      if (!isIncluded(include, 'latest_session'))
        return { data: rows.map((row) => visitorSummary(row)), pagination }
      const ids = rows.map(({ id }) => id)
      const latest = await findLatestSessions(pool, scope, ids)
      return {
        data: rows.map((row) => visitorSummary(row, latest.get(row.id) ?? null)),
        pagination,
      }
    },
  })
}

function sortValue(row: VisitorRow, sort: z.output<typeof visitorSort>): number {
  if (sort === 'seen_count') return row.seen_count
  return sort === 'first_seen' ? row.first_seen_at : row.last_seen_at
}

function getFingerprintRoute(
  app: FastifyInstance,
  { pool, auth, explainMatch, readLimiter }: ReadbackOptions,
): void {
  endpoint(app, {
    readLimiter,
    route: 'GET /v1/fingerprints/:visitorId',
    auth: auth.requireSecret('fingerprints:read'),
    operationId: 'getVisitorFingerprint',
    tag: fingerprintsTag,
    summary: 'Retrieve a visitor fingerprint',
    description:
      'Requires the `fingerprints:read` secret-key scope. A merged visitor returns 404 with `merged_into`, the id of the remaining one; an erased one 404 with `erasure`, the id and time of its receipt.',
    params: z.object({ visitorId: pathId('vid') }),
    query: visitorQuery,
    responses: { 200: single(visitorDetailSchema) },
    errors: [404],
    async run(request) {
      const { visitorId } = request.params
      const scope = auth.dataScope(request)
      const row = isId('vid', visitorId) ? await findVisitor(pool, scope, visitorId) : undefined
      if (!row) throw await noSuchVisitor(pool, scope, visitorId)
      const [newest] = row.activity
      const extras = isIncluded(request.query.include, 'identification') && {
        identification: newest ? await explainMatch(newest.session_id) : null,
      }
      return { data: { ...visitorDetail(row), ...extras } }
    },
  })
}

/** Returns a 404, which names the remaining visitor if the requested one was merged, or the erasure if it was erased. */
async function noSuchVisitor(pool: Db, scope: DataScope, visitorId: string): Promise<ApiError> {
  const [erasure] = isId('vid', visitorId) ? await findErasure(pool, scope, { visitorId }) : []
  if (erasure) {
    const { erasure_id: id, erased_at: at } = erasure
    const message = `This visitor was erased on ${iso(at).slice(0, 10)} (${id}).`
    return new ApiError('request.not_found', {
      message,
      details: { erasure: { id, erased_at: iso(at) } },
    })
  }
  const into = isId('vid', visitorId) ? await findMergedInto(pool, scope, visitorId) : undefined
  const hasRemaining =
    into !== undefined && isId('vid', into) && (await findVisitor(pool, scope, into)) !== undefined
  return new ApiError('request.not_found', {
    message: 'No visitor fingerprint with this id was observed in this environment.',
    ...(hasRemaining && { details: { merged_into: into } }),
  })
}
