import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { invalidField } from '../../infra/errors/errors.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { createCursors, loadPage, pageQuery, refuseOffset } from '../../infra/http/pagination.ts'
import { iso } from '../../infra/iso.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { hasUsableIndex, rowCost, type SessionFilters } from '../../projections/sessions/filters.ts'
import {
  hasTooManyToSort,
  type ListSessions,
  listSessions,
  maxSortedSessions,
  type SessionRowPage,
} from '../../projections/sessions/list-sessions.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
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
  { pool, readLimiter, auth, keyring, clock, roleOf }: ReadbackOptions,
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
      'Requires the `sessions:list` secret-key scope. Newest decision first, unless `sort` or `order` is set. Repeat a parameter to OR its values (with `[not]`, to exclude all of them); different parameters are ANDed. `[not]` of an unknown name is refused. The header `X-Filters-Applied` names the filters in effect. Costs one unit with filters by time, verdict, visitor and user only; two with other filters, plus one for every two or three signals or attributions; five with `search` or sorted by score.',
    query: z.object({
      ...pageQuery,
      ...filterQuery,
      search: z
        .string()
        .optional()
        .describe(
          'Text to find in ids, `client_user_id`, page URL (encoded or decoded), user agent and IP address. A complete `sid_`, `evt_` or `vid_` id (or a legacy 32-digit hexadecimal id) matches exactly, ignoring case. Part of an id is looked for among the first 10,000 sessions of the page.',
        ),
      sort: z
        .enum(['evaluated_at', 'risk_score'])
        .optional()
        .describe(
          `\`evaluated_at\` (default): by the time of the newest decision. \`risk_score\`: by its score, then by session id; not with \`search\`, and only if the period has at most ${maxSortedSessions} sessions.`,
        ),
      order: z.enum(['asc', 'desc']).optional().describe('Default: `desc`.'),
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
      const { limit, cursor, search, include, sort, order, ...parameters } = request.query
      const scope = auth.dataScope(request)
      const filters = filtersOf(parameters)
      await auth.raiseCharge(request, { reply, cost: costOf({ filters, search, sort }) })
      if (sort === 'risk_score') await requireSortable(pool, scope, { filters, search })
      const { rows, pagination, meta } = await loadPage({
        limit,
        cursor,
        cursors,
        query: {
          list: 'sessions',
          ...scope,
          search: search || null,
          ...cursorFilters(parameters),
          ...(sort && { sort }),
          ...(order && { order }),
        },
        load: async (after) => {
          const page = await listSessions(pool, scope, {
            limit,
            filters,
            search,
            sort,
            order,
            after,
          })
          return withReadRange(page, after?.begunAt ?? readStart(filters, order, clock()))
        },
        positionOf: (row) => ({ value: row.latest_decision[sort ?? 'evaluated_at'], id: row.id }),
      })
      reply.header(filtersHeader, appliedFilters({ ...parameters, search }))
      const withResolution = isIncluded(include, 'resolution')
      return {
        data: rows.map((row) => sessionSummary(row, { roleOf, withResolution })),
        pagination,
        meta,
      }
    },
  })
}

/** Returns the units of a request: one if an index finds the page, more if thousands of sessions must be read. */
function costOf({ filters = {}, search, sort }: Partial<ListSessions>): number {
  if (search || sort === 'risk_score') return 5
  return hasUsableIndex(filters) ? 1 : 2 + Math.floor(2 * (rowCost(filters) - 1))
}

async function requireSortable(
  pool: Db,
  scope: DataScope,
  { filters = {}, search }: Pick<ListSessions, 'filters' | 'search'>,
): Promise<void> {
  const refuse = (expected: string) =>
    invalidField({ name: 'sort', issue: 'not_allowed', expected })
  if (search) throw refuse('search results are sorted by time only')
  if (await hasTooManyToSort(pool, scope, filters))
    throw refuse(
      `the period has more than ${maxSortedSessions} sessions, too many to sort by risk_score`,
    )
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

function readStart(
  { since = 0, until = Infinity }: SessionFilters,
  order: string | undefined,
  now: number,
) {
  return order === 'asc' ? since : Math.min(now, until)
}

// Adds the range that was read, and the next cursor, if the page read only some of the sessions.
function withReadRange({ readTo, ...page }: SessionRowPage, begunAt: number) {
  if (readTo === undefined) return { ...page, next: undefined, meta: undefined }
  const meta = { read_from: iso(begunAt), read_to: readTo && iso(readTo.value) }
  const next = readTo ? { ...readTo, begunAt } : undefined
  return { ...page, next, meta }
}
