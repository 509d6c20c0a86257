import type pg from 'pg'
import type { Logger } from 'pino'
import { isTransient } from '../../infra/event-store/apply-batch.ts'
import { type Build, buildLock, findBuild, useSchema } from '../../infra/event-store/builds.ts'
import { type Periodic, runPeriodically } from '../../infra/flow/periodic.ts'
import type { Clock } from '../../infra/ids.ts'
import { type Tx, transaction, tryLock } from '../../infra/postgres/pool.ts'
import { hourMs, hourOf, type RolledField, rolledFields } from './hours.ts'
import { sessionsProjection } from './projection.ts'

interface RollUpOptions {
  pool: pg.Pool
  clock: Clock
  logger: Logger
  intervalMs?: number
}

// So many hours wait together for those who were applying events.
const hoursAtOnce = 24
// Decisions of an hour come a little after it.
const graceMs = 5 * 60_000

/** Whoever counts hours holds it. */
export const rollUpLock = 'tidegate:roll-up'

interface Hour {
  organization_id: string
  environment: string
  hour: number
}

/** Counts hours that are over, of every organization, newest first. Several may run, and one works at a time. */
export function runRollUp({ pool, clock, logger, intervalMs = 60_000 }: RollUpOptions): Periodic {
  // All hours before it have been looked through, by this process. Those that were deleted since are made with the next hour.
  let done: number | undefined

  async function work(): Promise<boolean> {
    const now = clock() - graceMs
    const before = now - (now % hourMs)
    if (done === before) return false
    const hours = await rollUpOnce(pool, before)
    if (hours === 0) done = before
    return hours !== null && hours > 0
  }

  function onError(err: unknown): void {
    logger[isTransient(err) ? 'debug' : 'warn'](
      { err },
      'hours were not counted; the next run tries again',
    )
  }

  return runPeriodically({ intervalMs, work, onError })
}

/**
 * Returns how many hours it has counted, or null where another process is at it, which may die before it is done. A row without numbers is made for each of them first. Then all who were changing
 * sessions when nobody could see these rows are waited for: from there on, whoever changes a session of the hour deletes
 * its row, and what was counted is written only where the row is still there.
 */
export async function rollUpOnce(pool: pg.Pool, before: number): Promise<number | null> {
  return transaction(pool, async (holder) => {
    if (!(await tryLock(holder, rollUpLock))) return null
    const build = await findBuild(holder, sessionsProjection)
    const hours = await transaction(pool, (tx) => announceHours(tx, build, before))
    if (hours.length === 0) return 0
    await transaction(pool, (tx) =>
      tx.query('select pg_advisory_xact_lock($1)', [buildLock(build)]),
    )
    for (const hour of hours) {
      await transaction(pool, (tx) => countHour(tx, build, hour))
      // A transaction that says nothing for long is ended.
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

// It walks from scope to scope and from hour to hour by the index, and reads one session of each.
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
  limit ${hoursAtOnce}`

// Two columns of the row: the entries of the field, and how many sessions have each.
function countedField(field: RolledField): string {
  const arrays: Partial<Record<RolledField, string>> = {
    signal: 'signals',
    attribution: 'attribution',
  }
  const array = arrays[field]
  const value = array ? 'u.value' : `r.${field}`
  const from = array
    ? `counted r left join lateral unnest(r.${array}) as u (value) on true`
    : 'counted r'
  // A key stays when facts end.
  const ended = field === 'key_id' ? '' : `when r.scoring_version is null then '!'`
  return `(select coalesce(array_agg(entry order by entry), '{}') as entries,
      coalesce(array_agg(n::integer order by entry), '{}') as sessions
    from (select left(r.verdict, 1) || case ${ended} when ${value} is null then '-' else '=' || ${value} end as entry,
      count(*) as n from ${from} group by 1) e) as of_${field}`
}

const countHourSql = `with counted as materialized (
    select * from sessions where organization_id = $1 and environment = $2
      and evaluated_at >= $3 and evaluated_at < $3 + ${hourMs}::bigint
  )
  update session_hours h set sessions = (select count(*) from counted),
    ${rolledFields.map((field) => `${field} = of_${field}.entries, ${field}_sessions = of_${field}.sessions`).join(', ')}
  from ${rolledFields.map(countedField).join(', ')}
  where h.organization_id = $1 and h.environment = $2 and h.hour = $3`

async function countHour(
  tx: Tx,
  build: Build,
  { organization_id, environment, hour }: Hour,
): Promise<void> {
  await tx.query(useSchema(build))
  await tx.query(countHourSql, [organization_id, environment, hour])
}
