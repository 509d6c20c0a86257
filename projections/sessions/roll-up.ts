import type pg from 'pg'
import type { Logger } from 'pino'
import { isTransient } from '../../infra/event-store/apply-batch.ts'
import {
  type Build,
  buildLock,
  requireCurrentBuild,
  searchPath,
} from '../../infra/event-store/builds.ts'
import { type Periodic, runPeriodically } from '../../infra/flow/periodic.ts'
import type { Clock } from '../../infra/ids.ts'
import { type Tx, transaction, tryLock } from '../../infra/postgres/pool.ts'
import { hourMs, hourStartSql, type RollUpField, rollUpFields } from './hours.ts'
import { sessionsProjection } from './projection.ts'

interface RollUpOptions {
  pool: pg.Pool
  clock: Clock
  logger: Logger
  intervalMs?: number
}

// Bounds the hours per pass. Each pass waits once for running transactions.
const hoursPerPass = 24
// Decisions may arrive this late.
const graceMs = 5 * 60_000

/** Lock held while hours are counted. */
export const rollUpLock = 'tidegate:roll-up'

interface Hour {
  organization_id: string
  environment: string
  hour: number
}

/** Rolls up past hours of all organizations, newest first. Processes take turns through a lock. */
export function runRollUp({ pool, clock, logger, intervalMs = 60_000 }: RollUpOptions): Periodic {
  // All hours before this one were done. Roll-ups deleted since then are recomputed after the next hour begins.
  let finishedBefore: number | undefined

  async function work(): Promise<boolean> {
    const now = clock() - graceMs
    const before = now - (now % hourMs)
    if (finishedBefore === before) return false
    const hours = await rollUpOnce(pool, before)
    if (hours === 0) finishedBefore = before
    return hours !== null && hours > 0
  }

  function onError(err: unknown): void {
    logger[isTransient(err) ? 'debug' : 'warn'](
      { err },
      'failed to update hourly session counts; retrying',
    )
  }

  return runPeriodically({ intervalMs, work, onError })
}

/**
 * Rolls up the newest missing hours. Returns their number, or null if another process holds the lock. First inserts an
 * empty row for each hour, then waits for transactions that could not see it. From then on, a change of a session
 * deletes the row of its hour, and counts are written only to rows that still exist.
 */
export async function rollUpOnce(pool: pg.Pool, before: number): Promise<number | null> {
  return transaction(pool, async (holder) => {
    if (!(await tryLock(holder, rollUpLock))) return null
    const build = await requireCurrentBuild(holder, sessionsProjection)
    const hours = await transaction(pool, (tx) => announceHours(tx, build, before))
    if (hours.length === 0) return 0
    await transaction(pool, (tx) =>
      tx.query('select pg_advisory_xact_lock($1)', [buildLock(build)]),
    )
    for (const hour of hours) {
      await transaction(pool, (tx) => countHour(tx, build, hour))
      // Keeps the transaction that holds the lock from hitting the idle timeout.
      await holder.query('select')
    }
    return hours.length
  })
}

async function announceHours(tx: Tx, build: Build, before: number): Promise<Hour[]> {
  await tx.query(searchPath(build))
  const { rows } = await tx.query<Hour>(hoursToCount, [before])
  await tx.query(
    `insert into session_hours (organization_id, environment, hour)
     select * from unnest($1::text[], $2::text[], $3::bigint[]) on conflict do nothing`,
    [
      rows.map((row) => row.organization_id),
      rows.map((row) => row.environment),
      rows.map((row) => row.hour),
    ],
  )
  return rows
}

const firstScopeSql = (where: string) => `select organization_id, environment from sessions ${where}
  order by organization_id, environment limit 1`
const newestHourSql = (scope: string, before: string) =>
  `select ${hourStartSql('s.evaluated_at')} as hour from sessions s where s.organization_id = ${scope}.organization_id
     and s.environment = ${scope}.environment and s.evaluated_at < ${before}
   order by s.evaluated_at desc limit 1`

// Loose index scan: reads one session per scope, then one per hour.
const hoursToCount = `with recursive scopes as (
    (${firstScopeSql('')})
    union all
    select n.* from scopes c cross join lateral (
      ${firstScopeSql('where (organization_id, environment) > (c.organization_id, c.environment)')}
    ) n
  ), hours as (
    select c.organization_id, c.environment, n.hour from scopes c cross join lateral (${newestHourSql('c', '$1')}) n
    union all
    select c.organization_id, c.environment, n.hour from hours c cross join lateral (${newestHourSql('c', 'c.hour')}) n
  )
  select organization_id, environment, hour::float8 as hour from hours h
  where not exists (select from session_hours r where r.organization_id = h.organization_id
    and r.environment = h.environment and r.hour = h.hour and r.sessions is not null)
  limit ${hoursPerPass}`

// Returns SQL for the two arrays of a field.
function fieldCountsSql(field: RollUpField): string {
  const arrays: Partial<Record<RollUpField, string>> = {
    signal: 'signals',
    attribution: 'attribution',
  }
  const array = arrays[field]
  const value = array ? 'u.value' : `r.${field}`
  const from = array
    ? `counted r left join lateral unnest(r.${array}) as u (value) on true`
    : 'counted r'
  // Key ids are kept when facts expire.
  const endedCase = field === 'key_id' ? '' : `when r.scoring_version is null then '!'`
  return `(select coalesce(array_agg(entry order by entry), '{}') as entries,
      coalesce(array_agg(n::integer order by entry), '{}') as sessions
    from (select left(r.verdict, 1) || case ${endedCase} when ${value} is null then '-' else '=' || ${value} end as entry,
      count(*) as n from ${from} group by 1) e) as of_${field}`
}

const countHourSql = `with counted as materialized (
    select * from sessions where organization_id = $1 and environment = $2
      and evaluated_at >= $3 and evaluated_at < $3 + ${hourMs}::bigint
  )
  update session_hours h set sessions = (select count(*) from counted),
    ${rollUpFields.map((field) => `${field} = of_${field}.entries, ${field}_sessions = of_${field}.sessions`).join(', ')}
  from ${rollUpFields.map(fieldCountsSql).join(', ')}
  where h.organization_id = $1 and h.environment = $2 and h.hour = $3`

async function countHour(
  tx: Tx,
  build: Build,
  { organization_id, environment, hour }: Hour,
): Promise<void> {
  await tx.query(searchPath(build))
  await tx.query(countHourSql, [organization_id, environment, hour])
}
