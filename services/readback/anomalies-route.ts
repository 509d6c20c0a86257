import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { endpoint } from '../../infra/http/endpoint.ts'
import { single } from '../../infra/http/schemas.ts'
import { iso } from '../../infra/iso.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import {
  findEarliestDecisionTime,
  inSnapshot,
  planCount,
} from '../../projections/sessions/aggregates.ts'
import {
  type BaselineHour,
  countBaseline,
  countMatches,
  countWatchedValues,
} from '../../projections/sessions/anomaly-counts.ts'
import type { TimeRange } from '../../projections/sessions/count-groups.ts'
import { hourMs } from '../../projections/sessions/hours.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { type Anomaly, decideAnomalies } from './anomalies.ts'
import type { ReadbackOptions } from './options.ts'
import { findRises, minSessions, sum } from './rises.ts'
import { anomaliesSchema, type SessionAnomalies } from './schemas/anomalies.ts'
import { filterQuery, filtersOf } from './session-filters.ts'

// Units, beside those for the sessions that are read.
const baseCost = 10
const dayMs = 24 * hourMs
const maxBaselineDays = 7

const query = z.object({
  since: filterQuery.since.describe(
    'Start of the period, inclusive. Default, and at the earliest: a day before `until`.',
  ),
  until: filterQuery.until.describe('End of the period, exclusive. Default: now.'),
})

export function anomaliesRoute(
  app: FastifyInstance,
  { pool, readLimiter, auth, clock, roleOf }: ReadbackOptions,
): void {
  endpoint(app, {
    readLimiter,
    route: 'GET /v1/sessions/anomalies',
    auth: auth.requireSecret('sessions:list', baseCost),
    operationId: 'listSessionAnomalies',
    tag: 'Sessions',
    summary: 'List anomalies',
    description: `Requires the \`sessions:list\` secret-key scope. Returns values of tools, agents, paths, networks, countries and risk signals that at least ${minSessions} sessions have, and at least three times their share in the same hours of up to ${maxBaselineDays} days before. Values that the same sessions have are one anomaly. Costs ${baseCost} units, and more if many sessions must be read one by one.`,
    query,
    responses: { 200: single(anomaliesSchema) },
    errors: [422],
    async run(request, { reply }) {
      const scope = auth.dataScope(request)
      const { since, until = clock() + 1 } = filtersOf(request.query)
      const earliest = (await findEarliestDecisionTime(pool, scope)) ?? until
      const start = Math.min(until, Math.max(since ?? 0, until - dayMs, earliest + dayMs))
      const anomalies = await inSnapshot(pool, async (tx) => {
        const plan = await planCount(tx, scope, {
          filters: { since: start, until },
          interval: 'hour',
          groupBy: ['signal', 'verdict'],
          top: 1,
        })
        await auth.raiseCharge(request, { reply, cost: baseCost + plan.units })
        return findAnomalies(tx, scope, { sources: plan.sources, earliest, roleOf })
      })
      return { data: anomalies }
    },
  })
}

interface FindOptions extends Pick<ReadbackOptions, 'roleOf'> {
  sources: Awaited<ReturnType<typeof planCount>>['sources']
  earliest: number
}

async function findAnomalies(
  tx: Tx,
  scope: DataScope,
  { sources, earliest, roleOf }: FindOptions,
): Promise<SessionAnomalies> {
  const { since, until } = sources
  const days = Math.max(0, Math.min(maxBaselineDays, Math.floor((since - earliest) / dayMs)))
  const now = Map.groupBy(await countWatchedValues(tx, scope, { ...sources, minSessions }), keyOf)
  const watched = [...now.values()].flatMap(([first]) =>
    first?.field && (first.field !== 'signal' || roleOf(first.value) === 'risk')
      ? [{ field: first.field, value: first.value }]
      : [],
  )
  const baselineCounts = await countBaseline(tx, scope, baselineHours(sources, days), watched)
  const before = Map.groupBy(baselineCounts, keyOf)
  const first = since - (since % hourMs)
  const length = Math.max(0, Math.ceil((until - first) / hourMs))
  const countsOf = (key: string) => {
    const zeros = () => Array.from({ length }, () => 0)
    const counts = { sessions: zeros(), bots: zeros(), baseline: zeros(), peak: 0 }
    for (const { hour, sessions, bots } of now.get(key) ?? []) {
      counts.sessions[(hour - first) / hourMs] = sessions
      counts.bots[(hour - first) / hourMs] = bots
    }
    for (const { slot, sessions, busiest } of before.get(key) ?? [])
      if (slot === null) counts.peak += busiest / days
      else counts.baseline[slot] = sessions
    return counts
  }
  const total = countsOf(keyOf({ field: null, value: '' }))
  const values = watched.map((value) => ({ ...value, ...countsOf(keyOf(value)) }))
  const comparison = { ...total, since, until, days, values }
  const rises = findRises(comparison)
  const matches = rises.length > 0 ? await countMatches(tx, scope, rises) : []
  return {
    object: 'session_anomalies',
    since: iso(since),
    until: iso(until),
    has_history: days > 0 && sum(total.baseline) >= minSessions,
    baseline_days: days,
    is_complete: !sources.isPartial,
    sessions: sum(total.sessions),
    anomalies: decideAnomalies(comparison, rises, matches).map(anomalyJson),
  }
}

const keyOf = ({ field, value }: { field: string | null; value: string }) => `${field} ${value}`

/** Returns the same hours of the days before. The first and the last hour may be compared in part. */
function baselineHours({ since, until }: TimeRange, days: number): BaselineHour[] {
  const first = since - (since % hourMs)
  const slots = Array.from({ length: Math.ceil((until - first) / hourMs) }, (_, slot) => {
    const hour = first + slot * hourMs
    const weight = (Math.min(until, hour + hourMs) - Math.max(since, hour)) / hourMs
    return { hour, weight, slot }
  })
  return Array.from({ length: days }, (_, day) =>
    slots.map((slot) => ({ ...slot, day, hour: slot.hour - (day + 1) * dayMs })),
  ).flat()
}

const anomalyJson = (anomaly: Anomaly): SessionAnomalies['anomalies'][number] => ({
  values: anomaly.values,
  sessions: anomaly.sessions,
  expected: rounded(anomaly.expected),
  lift: rounded(anomaly.lift),
  bots: anomaly.bots,
  bot_lift: rounded(anomaly.botLift),
  started_at: iso(anomaly.startedAt),
  ended_at: iso(anomaly.endedAt),
  series: anomaly.series.map(({ at, sessions, expected }) => ({
    start: iso(at),
    sessions,
    expected: rounded(expected),
  })),
})

const rounded = (value: number): number => Math.round(value * 100) / 100
