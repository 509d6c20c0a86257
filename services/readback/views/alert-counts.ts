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
const maxPages = { count: 5, share: 5, multiple: 1 }

interface Conditions {
  filters: SessionFilters
  search?: string | undefined
}

/** Sessions that match, and the start of the range in which they were counted. */
interface RangeCount {
  sessions: number
  since: number
  /** Sessions whose filtered fields have expired. */
  ended?: number
}

/** Counts what the alert's value is calculated from. Too many sessions shorten the window. */
export async function countForAlert(
  tx: Tx,
  { kind, window_minutes, organization_id: organizationId, environment }: AlertRow,
  { conditions, until }: { conditions: Conditions; until: number },
): Promise<AlertCounts> {
  const scope = { organizationId, environment }

  async function count(
    range: TimeRange,
    { search, ...others }: Conditions = conditions,
  ): Promise<RangeCount> {
    const filters = { ...others.filters, ...range }
    if (search) return countSearch(tx, scope, { search, filters, maxPages: maxPages[kind] })
    const plan = await planCount(tx, scope, {
      filters,
      interval: 'none',
      groupBy: [],
      top: 1,
      countsDistinct: false,
      ...(kind === 'multiple' && { maxRows: maxRowsOfMultiple }),
    })
    return countPlanned(tx, scope, plan)
  }

  const { sessions: matching, since } = await count({
    since: until - window_minutes * 60_000,
    until,
  })
  if (since >= until) throw new Error('too many sessions in the last hour to count')
  const total = kind === 'share' ? (await count({ since, until }, { filters: {} })).sessions : 0
  const earliest = kind === 'multiple' ? await findEarliestDecisionTime(tx, scope) : null
  const days = Math.min(maxDaysBefore, Math.floor((since - (earliest ?? since)) / dayMs))
  const before: number[] = []
  for (let day = 1; day <= days; day++) {
    const range = { since: since - day * dayMs, until: until - day * dayMs }
    const { sessions, ended = 0, since: start } = await count(range)
    // Sessions whose decisions have expired can't match.
    if (ended === 0 && start < range.until)
      before.push((sessions * (until - since)) / (range.until - start))
  }
  return { matching, total, before }
}

async function countSearch(
  tx: Tx,
  scope: DataScope,
  { maxPages, ...query }: { search: string; filters: SessionFilters & TimeRange; maxPages: number },
): Promise<RangeCount> {
  let sessions = 0
  let after: SessionPosition | undefined
  for (let page = 0; page < maxPages; page++) {
    const { rows, hasMore, readTo } = await listSessions(tx, scope, {
      ...query,
      limit: 1000,
      after,
    })
    sessions += rows.length
    const last = rows.at(-1)
    if (!hasMore) return { sessions, since: query.filters.since }
    after = readTo ?? (last && { value: last.latest_decision.evaluated_at, id: last.id })
  }
  return { sessions, since: after?.value ?? query.filters.since }
}
