import type { Tx } from '../../../infra/postgres/pool.ts'
import {
  countPlanned,
  findEarliestDecisionTime,
  planCount,
} from '../../../projections/sessions/aggregates.ts'
import type { TimeRange } from '../../../projections/sessions/count-groups.ts'
import type { SessionFilters } from '../../../projections/sessions/filters.ts'
import { listSessions, type SessionPosition } from '../../../projections/sessions/list-sessions.ts'
import type { DataScope } from '../../../projections/sessions/scope.ts'
import type { AlertCounts } from './alert-decide.ts'
import type { AlertRow } from './alert-store.ts'

const dayMs = 24 * 60 * 60 * 1000
const maxDaysBefore = 7
// Keeps the time of a multiple's eight counts below the limit of the transaction with the lock, which is idle meanwhile.
const maxRowsOfMultiple = 100_000
const searchLimits = { sessions: 1000, pages: 5 }

interface Conditions {
  filters: SessionFilters
  search?: string | undefined
}

/** Counts what the alert's value is calculated from. Too many sessions shorten the window. */
export async function countForAlert(
  tx: Tx,
  { kind, window_minutes, organization_id: organizationId, environment }: AlertRow,
  { conditions, until }: { conditions: Conditions; until: number },
): Promise<AlertCounts> {
  const scope = { organizationId, environment }
  const window = { since: until - window_minutes * 60_000, until }
  const count = (query: Conditions, range: TimeRange) =>
    query.search
      ? countSearch(tx, scope, query, range)
      : countFiltered(tx, scope, query, { ...range, isMultiple: kind === 'multiple' })
  const { sessions: matching, since } = await count(conditions, window)
  if (since >= until) throw new Error('too many sessions in the last hour to count')
  const total = kind === 'share' ? (await count({ filters: {} }, { since, until })).sessions : 0
  const earliest = kind === 'multiple' ? await findEarliestDecisionTime(tx, scope) : null
  const days = Math.min(maxDaysBefore, Math.floor((since - (earliest ?? since)) / dayMs))
  const before: number[] = []
  for (let day = 1; day <= days; day++) {
    const range = { since: since - day * dayMs, until: until - day * dayMs }
    const counted = await count(conditions, range)
    // Sessions whose decisions have expired can't match.
    if (counted.ended > 0 || counted.since >= range.until) continue
    before.push((counted.sessions * (until - since)) / (range.until - counted.since))
  }
  return { matching, total, before }
}

interface RangeCount {
  sessions: number
  /** Sessions whose filtered fields have expired. */
  ended: number
  /** Start of the range in which they were counted. */
  since: number
}

async function countFiltered(
  tx: Tx,
  scope: DataScope,
  { filters }: Conditions,
  { isMultiple, ...range }: TimeRange & { isMultiple: boolean },
): Promise<RangeCount> {
  const plan = await planCount(tx, scope, {
    filters: { ...filters, ...range },
    interval: 'none',
    groupBy: [],
    top: 1,
    countsDistinct: false,
    ...(isMultiple && { maxRows: maxRowsOfMultiple }),
  })
  return countPlanned(tx, scope, plan)
}

async function countSearch(
  tx: Tx,
  scope: DataScope,
  { filters, search }: Conditions,
  range: TimeRange,
): Promise<RangeCount> {
  const query = { search, filters: { ...filters, ...range }, limit: searchLimits.sessions }
  let sessions = 0
  let after: SessionPosition | undefined
  for (let page = 0; page < searchLimits.pages; page++) {
    const { rows, hasMore, readTo } = await listSessions(tx, scope, { ...query, after })
    sessions += rows.length
    const last = rows.at(-1)
    if (!hasMore) return { sessions, ended: 0, since: range.since }
    after = readTo ?? (last && { value: last.latest_decision.evaluated_at, id: last.id })
  }
  return { sessions, ended: 0, since: after?.value ?? range.since }
}
