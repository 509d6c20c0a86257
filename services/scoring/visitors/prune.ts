import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { type Periodic, runPeriodically } from '../../../infra/flow/periodic.ts'
import { type Tx, transaction, tryLock } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { findEndedData } from '../../../projections/policies/queries.ts'

/** By organization: visitors that were not seen since then have ended, epoch milliseconds. */
export type EndedVisitors = ReadonlyMap<string, number>

const ended = `unnest($1::text[], $2::bigint[]) as ended (organization_id, before)`

/** Deletes from the tables in one go, which is for tables that nobody else writes to meanwhile. */
export async function deleteEndedVisitors(
  tx: Tx,
  of: EndedVisitors,
  { visitors, keys, links }: { visitors: string; keys: string; links: string },
): Promise<void> {
  if (of.size === 0) return
  await tx.query(
    `delete from ${visitors} v using ${ended} where v.organization_id = ended.organization_id
       and v.last_seen_at < ended.before`,
    [[...of.keys()], [...of.values()]],
  )
  // Keys and links of visitors that were deleted before may still be there.
  for (const table of [keys, links])
    await tx.query(
      `delete from ${table} t where not exists (select from ${visitors} v where v.visitor_id = t.visitor_id)`,
    )
}

// A visitor has several keys and links, and all that a page deletes is one transaction.
const pageSize = 1000

/**
 * Deletes the ended visitors of a page with their keys and links, and what an erasure that failed halfway left of hidden
 * ones. A visitor that is seen again meanwhile stays, because Postgres checks a locked row again. The page is one of ids,
 * because an index on when visitors were last seen would cost each session.
 */
async function prunePage(tx: Tx, of: EndedVisitors, after: string): Promise<string | undefined> {
  // Erasures and corrections take the same rows in another order: a page waits for them, and they for it.
  await tx.query('lock table scoring.offsets in row share mode')
  const idsOf = (table: string) =>
    `(select distinct visitor_id from ${table} where visitor_id > $3 order by visitor_id limit ${pageSize})`
  const { rows } = await tx.query<{ last: string }>({
    name: 'prune-visitors-page',
    text: `with page as materialized (
        ${idsOf('scoring.visitors')} union ${idsOf('scoring.links')} order by visitor_id limit ${pageSize}
      ),
      gone as (
        delete from scoring.visitors v using page, ${ended} where v.visitor_id = page.visitor_id
          and v.organization_id = ended.organization_id and v.last_seen_at < ended.before
        returning v.visitor_id
      ),
      forgotten as materialized (
        select visitor_id from gone union all select visitor_id from page
        where not exists (select from scoring.visitors v where v.visitor_id = page.visitor_id)
      ),
      keys as (delete from scoring.visitor_keys k using forgotten f where k.visitor_id = f.visitor_id),
      links as (delete from scoring.links l using forgotten f where l.visitor_id = f.visitor_id)
      select visitor_id as last from page order by visitor_id offset ${pageSize - 1}`,
    values: [[...of.keys()], [...of.values()], after],
  })
  return rows[0]?.last
}

interface PrunerOptions {
  pool: pg.Pool
  logger: Logger
  intervalMs?: number
}

/** Deletes attested devices that were not seen since. */
export async function pruneDevices(tx: Tx, of: EndedVisitors, name: string): Promise<void> {
  if (of.size === 0) return
  await tx.query(
    `delete from ${name} d using ${ended}
     where d.organization_id = ended.organization_id and d.last_seen_at < ended.before`,
    [[...of.keys()], [...of.values()]],
  )
}

const restMs = 50

/** Deletes ended visitors: once through all, whenever more have ended. One process works at a time. */
export function runVisitorPruner({ pool, logger, intervalMs = 60_000 }: PrunerOptions): Periodic {
  /** undefined = no walk is under way. */
  let after: string | undefined
  let walkedFor = ''

  async function step(tx: Tx): Promise<boolean> {
    if (!(await tryLock(tx, 'tidegate:prune:scoring'))) return false
    const ended = endedVisitors(await findEndedData(tx))
    const name = JSON.stringify([...ended])
    if (ended.size > 0 && name !== walkedFor) after ??= ''
    if (after === undefined) return false
    after = await prunePage(tx, ended, after)
    if (after !== undefined) return true
    await pruneDevices(tx, ended, 'scoring.attested_devices')
    walkedFor = name
    return false
  }

  return runPeriodically({
    intervalMs,
    async work() {
      const more = await transaction(pool, step)
      if (more) await delay(restMs)
      return more
    },
    onError: (err) =>
      logger.warn({ err }, 'ended visitors were not deleted; the next poll tries again'),
  })
}

export function endedVisitors(
  ended: { organization_id: string; visitors_before: number | null }[],
): EndedVisitors {
  const latest = new Map<string, number>()
  for (const { organization_id, visitors_before } of ended)
    if (visitors_before !== null)
      latest.set(organization_id, Math.max(visitors_before, latest.get(organization_id) ?? 0))
  return latest
}
