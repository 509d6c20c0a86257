import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { endpoint } from '../../infra/http/endpoint.ts'
import { createCursors, loadPage, pageQuery, refuseOffset } from '../../infra/http/pagination.ts'
import { iso } from '../../projections/sessions/decision-json.ts'
import { hasUsableIndex, rowCost, type SessionFilters } from '../../projections/sessions/filters.ts'
import { listSessions, type SessionRowPage } from '../../projections/sessions/list-sessions.ts'
import type { ReadbackOptions } from './options.ts'
import { includeParameter, isIncluded } from './options.ts'
import { sessionSummary } from './responses.ts'
import { sessionListSchema } from './schemas/sessions.ts'
import {
  appliedFilters,
  createFilterCheck,
  type FilterQuery,
  filterQuery,
  filtersHeader,
  filtersOf,
} from './session-filters.ts'

const checkFilters = createFilterCheck()

export function sessionsRoute(
  app: FastifyInstance,
  { pool, readLimiter, auth, keyring, clock }: ReadbackOptions,
): void {
  const cursors = createCursors({ keyring })
  endpoint(app, {
    readLimiter,
    route: 'GET /v1/sessions',
    auth: auth.requireSecret('sessions:list'),
    operationId: 'listSessions',
    tag: 'Sessions',
    summary: 'List sessions',
    description:
      'Requires the `sessions:list` secret-key scope. Newest decision first. Repeat a parameter to OR its values (with `[not]`, to exclude all of them); different parameters are ANDed. `[not]` of an unknown name is refused. The header `X-Filters-Applied` names the filters in effect. Costs one unit with filters by time, verdict, visitor and user only; two with other filters, plus one for every two or three signals or attributions; five with `search`.',
    query: z.object({
      ...pageQuery,
      ...filterQuery,
      search: z
        .string()
        .optional()
        .describe(
          'Text to find in ids, `client_user_id`, page URL (encoded or decoded), user agent and IP address. A complete `sid_`, `evt_` or `vid_` id (or a legacy 32-digit hexadecimal id) matches exactly, ignoring case.',
        ),
      include: includeParameter(
        'Additional members: `resolution` (how each session was matched to its visitor).',
      ),
    }),
    async beforeValidation(request) {
      await refuseOffset(request)
      checkFilters(request)
    },
    responses: { 200: sessionListSchema },
    errors: [422],
    async run(request, { reply }) {
      const { limit, cursor, search, include, ...parameters } = request.query
      const scope = auth.dataScope(request)
      const filters = filtersOf(parameters)
      await auth.raiseCharge(request, { reply, cost: costOf(filters, search) })
      const { rows, pagination, meta } = await loadPage({
        limit,
        cursor,
        cursors,
        query: { list: 'sessions', ...scope, search: search || null, ...cursorFilters(parameters) },
        load: async (after) => {
          const position = after && { evaluatedAt: after.value, id: after.id }
          const page = await listSessions(pool, scope, { limit, filters, search, after: position })
          return withReadRange(page, after?.begunAt ?? Math.min(clock(), filters.until ?? Infinity))
        },
        positionOf: (row) => ({ value: row.latest_decision.evaluated_at, id: row.id }),
      })
      reply.header(filtersHeader, appliedFilters({ ...parameters, search }))
      const withResolution = isIncluded(include, 'resolution')
      return { data: rows.map((row) => sessionSummary(row, { withResolution })), pagination, meta }
    },
  })
}

/** Returns the units of a request: one if an index finds the page, more if thousands of sessions must be read. */
function costOf(filters: SessionFilters, search: string | undefined): number {
  if (search) return 5
  return hasUsableIndex(filters) ? 1 : 2 + Math.floor(2 * (rowCost(filters) - 1))
}

// Returns the filters that a cursor is bound to. The verdict is separate, so that cursors of releases that only had
// this filter stay valid.
function cursorFilters({ verdict, ...filters }: FilterQuery) {
  const isFiltered = Object.values(filters).some((values) => values !== undefined)
  return {
    verdict: verdict?.join() ?? null,
    ...(isFiltered && { filters: JSON.stringify(filters) }),
  }
}

// Adds the range that was read, and the next cursor, if the page read only some of the sessions.
function withReadRange({ readTo, ...page }: SessionRowPage, begunAt: number) {
  if (readTo === undefined) return { ...page, next: undefined, meta: undefined }
  const meta = { read_from: iso(begunAt), read_to: readTo && iso(readTo.evaluatedAt) }
  const next = readTo ? { value: readTo.evaluatedAt, id: readTo.id, begunAt } : undefined
  return { ...page, next, meta }
}
