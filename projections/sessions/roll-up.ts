import type pg from 'pg'
import type { Logger } from 'pino'
import { isTransient } from '../../infra/event-store/apply-batch.ts'
import {
  type Build,
  buildLock,
  requireCurrentBuild,
  useSchema,
} from '../../infra/event-store/builds.ts'
import { type Periodic, runPeriodically } from '../../infra/flow/periodic.ts'
import type { Clock } from '../../infra/ids.ts'
import { type Tx, transaction, tryLock } from '../../infra/postgres/pool.ts'
import { hourMs, hourOf, type RollUpField, rollUpFields } from './hours.ts'
import { sessionsProjection } from './projection.ts'

interface RollUpOptions {
  pool: pg.Pool
  clock: Clock
  logger: Logger
  intervalMs?: number
}

// Hours per pass; a pass waits once for running transactions.
const hoursPerPass = 24
// Late decisions of an hour arrive within this time.
const graceMs = 5 * 60_000

/** Lock held while hours are counted. */
export const rollUpLock = 'tidegate:roll-up'

interface Hour {
  organization_id: string
  environment: string
  hour: number
}

/** Counts past hours of all organizations, newest first. Any number may run; a lock lets one work at a time. */
export function runRollUp({ pool, clock, logger, intervalMs = 60_000 }: RollUpOptions): Periodic {
  // This process found nothing left before this hour. Roll-ups deleted since then are recomputed with the next hour.
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
 * Counts a pass of hours. Returns their number, or null if another process holds the lock. First inserts a row without
 * numbers for each hour, then waits for the transactions that could not see these rows. From then on a change of a
 * session deletes the row of its hour, and a count is only written to a row that still exists.
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
      // Keeps the transaction that holds the lock from timing out as idle.
      await holder.query('select')
    }
    return hours.length
  })
}

async function announceHours(tx: Tx, build: Build, before: number): Promise<Hour[]> {
  await tx.query(useSchema(build))
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

const scopeAfter = (place: string) => `select organization_id, environment from sessions ${place}
  order by organization_id, environment limit 1`
const newestHour = (scope: string, before: string) =>
  `select ${hourOf('s.evaluated_at')} as hour from sessions s where s.organization_id = ${scope}.organization_id
     and s.environment = ${scope}.environment and s.evaluated_at < ${before}
   order by s.evaluated_at desc limit 1`

// Loose index scan from scope to scope and from hour to hour, reading one session of each.
const hoursToCount = `with recursive scopes as (
    (${scopeAfter('')})
    union all
    select n.* from scopes c cross join lateral (
      ${scopeAfter('where (organization_id, environment) > (c.organization_id, c.environment)')}
    ) n
  ), hours as (
    select c.organization_id, c.environment, n.hour from scopes c cross join lateral (${newestHour('c', '$1')}) n
    union all
    select c.organization_id, c.environment, n.hour from hours c cross join lateral (${newestHour('c', 'c.hour')}) n
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
  // Key ids are kept when facts are deleted.
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
  await tx.query(useSchema(build))
  await tx.query(countHourSql, [organization_id, environment, hour])
}
