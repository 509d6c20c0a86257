import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { invalidField } from '../../infra/errors/errors.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { single } from '../../infra/http/schemas.ts'
import { iso, isoOrNull } from '../../infra/iso.ts'
import {
  countPlanned,
  findEarliestDecisionTime,
  inSnapshot,
  planCount,
  type SessionCounts,
} from '../../projections/sessions/aggregates.ts'
import {
  type GroupField,
  groupFields,
  type Interval,
  intervals,
} from '../../projections/sessions/count-groups.ts'
import type { ReadbackOptions } from './options.ts'
import { aggregatesSchema, type SessionAggregates } from './schemas/aggregates.ts'
import {
  appliedFilters,
  createFilterCheck,
  filterQuery,
  filtersHeader,
  filtersOf,
} from './session-filters.ts'

// Units. A request may read millions of sessions.
const baseCost = 5
const defaultTop = 10
const maxTop = 100
const maxIntervals = 1500

const query = z.object({
  ...filterQuery,
  interval: z
    .enum(['none', 'minute', 'hour', 'day'])
    .default('none')
    .describe(
      `Length of the intervals, in UTC. At most ${maxIntervals} intervals between \`since\` and \`until\`.`,
    ),
  group_by: z
    .preprocess(
      (value) =>
        value === undefined ? [] : [value].flat().flatMap((part) => String(part).split(',')),
      z.array(z.enum(groupFields)).max(2),
    )
    .describe(
      'Up to two fields to group by, separated by a comma: `country,verdict`. A session is counted once for each of its signals and attributions.',
    ),
  top: z
    .preprocess(
      (value) => (typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value),
      z.int().min(1).max(maxTop).meta({ default: defaultTop }),
    )
    .default(defaultTop)
    .describe('Number of largest groups to return. The rest is returned as `other`.'),
  distinct: z
    .enum(['true', 'false'])
    .default('true')
    .describe('`false` leaves out `visitors` and `users`, which makes a large count faster.'),
})

export function aggregatesRoute(
  app: FastifyInstance,
  { pool, readLimiter, auth, clock }: ReadbackOptions,
): void {
  endpoint(app, {
    readLimiter,
    route: 'GET /v1/sessions/aggregates',
    auth: auth.requireSecret('sessions:list', baseCost),
    operationId: 'countSessions',
    tag: 'Sessions',
    summary: 'Count sessions',
    description: `Requires the \`sessions:list\` secret-key scope. Counts sessions by interval and by fields of their newest decisions. Takes the filters of \`GET /v1/sessions\`, except \`search\`, and returns the same header \`X-Filters-Applied\`. Costs ${baseCost} units, and more if many sessions must be read one by one: with filters, two fields, or intervals of a minute.`,
    query,
    beforeValidation: createFilterCheck(new Map([['search', 'only GET /v1/sessions supports it']])),
    responses: { 200: single(aggregatesSchema) },
    errors: [422],
    async run(request, { reply }) {
      const { interval, group_by: groupBy, top, distinct, ...parameters } = request.query
      const scope = auth.dataScope(request)
      const filters = filtersOf(parameters)
      const until = filters.until ?? clock() + 1
      const since = filters.since ?? (await findEarliestDecisionTime(pool, scope)) ?? until
      requireMaxIntervals(until - since, interval)
      const countQuery = {
        interval,
        groupBy: [...new Set(groupBy)],
        top,
        countsDistinct: distinct === 'true',
        filters: { ...filters, since, until },
      }
      const counts = await inSnapshot(pool, async (tx) => {
        const plan = await planCount(tx, scope, countQuery)
        await auth.raiseCharge(request, { reply, cost: baseCost + plan.units })
        return countPlanned(tx, scope, plan)
      })
      reply.header(filtersHeader, appliedFilters(parameters))
      return { data: aggregatesJson(counts, groupBy) }
    },
  })
}

function requireMaxIntervals(durationMs: number, interval: Interval): void {
  const length = intervals[interval]
  if (length === null || durationMs / length <= maxIntervals) return
  throw invalidField({
    name: 'interval',
    issue: 'too_many',
    expected: `at most ${maxIntervals} intervals between since and until`,
  })
}

function aggregatesJson(counts: SessionCounts, groupBy: GroupField[]): SessionAggregates {
  const { since, until, isPartial, sessions, ended, distinct, groups } = counts
  return {
    object: 'session_aggregates',
    since: iso(since),
    until: iso(until),
    is_complete: !isPartial,
    sessions,
    ended,
    visitors: distinct.visitors,
    users: distinct.users,
    distinct_missing: distinct.reason,
    groups: groups.map(({ at, kind, values, sessions }) => ({
      start: isoOrNull(at),
      kind,
      values: Object.fromEntries(values.map((value, i) => [groupBy[i], value])),
      sessions,
    })),
  }
}
