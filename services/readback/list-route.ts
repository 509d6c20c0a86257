import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { endpoint } from '../../infra/http/endpoint.ts'
import { createCursors, loadPage, pageQuery, refuseOffset } from '../../infra/http/pagination.ts'
import { iso } from '../../projections/sessions/decision-shape.ts'
import { isExact, type SessionFilters, signalWeight } from '../../projections/sessions/filters.ts'
import { listSessions, type SessionRowPage } from '../../projections/sessions/list-sessions.ts'
import { sessionSummary } from './answers.ts'
import type { ReadbackOptions } from './options.ts'
import { includeParameter, isIncluded } from './options.ts'
import { sessionListSchema } from './schemas/sessions.ts'
import {
  appliedFilters,
  type FilterQuery,
  filterQuery,
  filtersHeader,
  filtersOf,
  refusingFilters,
} from './session-filters.ts'

const refuseFilters = refusingFilters()

/** `GET /v1/sessions`. */
export function sessionsRoute(
  app: FastifyInstance,
  { pool, shares, auth, keyring, clock }: ReadbackOptions,
): void {
  const cursors = createCursors({ keyring })
  endpoint(app, {
    shares,
    route: 'GET /v1/sessions',
    auth: auth.requireSecret('sessions:list'),
    operationId: 'listSessions',
    tag: 'Sessions',
    summary: 'List sessions, newest decision first',
    description:
      'Requires the `sessions:list` secret-key scope. A parameter that comes several times means either of its values (with `[not]` none of them), and different parameters mean all. A `[not]` of another name is refused. `X-Filters-Applied` names those that were used. Costs one unit, two or more with filters other than times, verdicts, visitors and users (one more for each two or three signals or attributions), and five with `search`.',
    query: z.object({
      ...pageQuery,
      ...filterQuery,
      search: z
        .string()
        .optional()
        .describe(
          'A sid_, evt_ or vid_ id (or a legacy 32-digit hexadecimal one) matches exactly, ignoring case; anything else is looked for in ids, client_user_id, page URL (also as people read it), user agent and IP address.',
        ),
      include: includeParameter('`resolution`: how each session was tied to its visitor.'),
    }),
    async before(request) {
      await refuseOffset(request)
      refuseFilters(request)
    },
    answers: { 200: sessionListSchema },
    errors: [422],
    async run(request, { reply }) {
      const { limit, cursor, search, include, ...sent } = request.query
      const scope = auth.scope(request)
      const filters = filtersOf(sent)
      await auth.charge(request, { reply, cost: costOf(filters, search) })
      const { rows, pagination, meta } = await loadPage({
        limit,
        cursor,
        cursors,
        query: { list: 'sessions', ...scope, search: search || null, ...boundTo(sent) },
        load: async (after) => {
          const place = after && { evaluatedAt: after.value, id: after.id }
          const page = await listSessions(pool, scope, { limit, filters, search, after: place })
          return goingOn(page, after?.begunAt ?? Math.min(clock(), filters.until ?? Infinity))
        },
        positionOf: (row) => ({ value: row.latest_decision.evaluated_at, id: row.id }),
      })
      reply.header(filtersHeader, appliedFilters({ ...sent, search }))
      const withResolution = isIncluded(include, 'resolution')
      return { data: rows.map((row) => sessionSummary(row, { withResolution })), pagination, meta }
    },
  })
}

/** Units: what an index finds takes one. Else a page may read thousands of sessions, longer for each signal. */
function costOf(filters: SessionFilters, search: string | undefined): number {
  if (search) return 5
  return isExact(filters) ? 1 : 2 + Math.floor(2 * (signalWeight(filters) - 1))
}

// The verdict is not among the others, because cursors of before them are still good.
function boundTo({ verdict, ...others }: FilterQuery) {
  const isFiltered = Object.values(others).some((values) => values !== undefined)
  return {
    verdict: verdict?.join() ?? null,
    ...(isFiltered && { filters: JSON.stringify(others) }),
  }
}

function goingOn({ readTo, ...page }: SessionRowPage, begunAt: number) {
  if (readTo === undefined) return { ...page, next: undefined, meta: undefined }
  const meta = { read_from: iso(begunAt), read_to: readTo && iso(readTo.evaluatedAt) }
  const next = readTo ? { value: readTo.evaluatedAt, id: readTo.id, begunAt } : undefined
  return { ...page, next, meta }
}
