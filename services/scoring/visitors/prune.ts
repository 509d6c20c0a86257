import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { type Periodic, runPeriodically } from '../../../infra/flow/periodic.ts'
import { type Tx, transaction, tryLock } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { findRetentionCutoffs } from '../../../projections/policies/queries.ts'

/** Retention cutoff by organization, epoch milliseconds. Visitors last seen before it have expired. */
export type VisitorCutoffs = ReadonlyMap<string, number>

const expired = `unnest($1::text[], $2::bigint[]) as expired (organization_id, before)`

/** Deletes in a single step. Only for tables without concurrent writers. */
export async function deleteExpiredVisitors(
  tx: Tx,
  cutoffs: VisitorCutoffs,
  { visitors, keys, links }: { visitors: string; keys: string; links: string },
): Promise<void> {
  if (cutoffs.size === 0) return
  await tx.query(
    `delete from ${visitors} v using ${expired} where v.organization_id = expired.organization_id
       and v.last_seen_at < expired.before`,
    [[...cutoffs.keys()], [...cutoffs.values()]],
  )
  // Also delete keys and links whose visitor was deleted earlier.
  for (const table of [keys, links])
    await tx.query(
      `delete from ${table} t where not exists (select from ${visitors} v where v.visitor_id = t.visitor_id)`,
    )
}

// Visitors per transaction. Each has several keys and links.
const pageSize = 1000

/**
 * Deletes the expired visitors of a page with their keys and links, and links that an unfinished erasure left behind.
 * Returns the last id of the page, or undefined after the last page. A visitor seen again meanwhile is kept, because
 * Postgres checks a locked row again. Pages by id, because an index on `last_seen_at` would slow down every session.
 */
async function prunePage(
  tx: Tx,
  cutoffs: VisitorCutoffs,
  after: string,
): Promise<string | undefined> {
  // Lock out erasures and corrections, which lock the same rows in another order.
  await tx.query('lock table scoring.offsets in row share mode')
  const idsOf = (table: string) =>
    `(select distinct visitor_id from ${table} where visitor_id > $3 order by visitor_id limit ${pageSize})`
  const { rows } = await tx.query<{ last: string }>({
    name: 'prune-visitors-page',
    text: `with page as materialized (
        ${idsOf('scoring.visitors')} union ${idsOf('scoring.links')} order by visitor_id limit ${pageSize}
      ),
      deleted as (
        delete from scoring.visitors v using page, ${expired} where v.visitor_id = page.visitor_id
          and v.organization_id = expired.organization_id and v.last_seen_at < expired.before
        returning v.visitor_id
      ),
      missing as materialized (
        select visitor_id from deleted union all select visitor_id from page
        where not exists (select from scoring.visitors v where v.visitor_id = page.visitor_id)
      ),
      keys as (delete from scoring.visitor_keys k using missing m where k.visitor_id = m.visitor_id),
      links as (delete from scoring.links l using missing m where l.visitor_id = m.visitor_id)
      select visitor_id as last from page order by visitor_id offset ${pageSize - 1}`,
    values: [[...cutoffs.keys()], [...cutoffs.values()], after],
  })
  return rows[0]?.last
}

interface PrunerOptions {
  pool: pg.Pool
  logger: Logger
  intervalMs?: number
}

/** Deletes expired attested devices from the table. */
export async function pruneDevices(tx: Tx, cutoffs: VisitorCutoffs, table: string): Promise<void> {
  if (cutoffs.size === 0) return
  await tx.query(
    `delete from ${table} d using ${expired}
     where d.organization_id = expired.organization_id and d.last_seen_at < expired.before`,
    [[...cutoffs.keys()], [...cutoffs.values()]],
  )
}

const pauseMs = 50

/** Deletes expired visitors, in one pass over all visitors whenever a cutoff changes. One process works at a time. */
export function runVisitorPruner({ pool, logger, intervalMs = 60_000 }: PrunerOptions): Periodic {
  /** Last id of the previous page; undefined = no pass is running. */
  let after: string | undefined
  let lastPass = ''

  async function step(tx: Tx): Promise<boolean> {
    if (!(await tryLock(tx, 'tidegate:prune:scoring'))) return false
    const cutoffs = visitorCutoffs(await findRetentionCutoffs(tx))
    const pass = JSON.stringify([...cutoffs])
    if (cutoffs.size > 0 && pass !== lastPass) after ??= ''
    if (after === undefined) return false
    after = await prunePage(tx, cutoffs, after)
    if (after !== undefined) return true
    await pruneDevices(tx, cutoffs, 'scoring.attested_devices')
    lastPass = pass
    return false
  }

  return runPeriodically({
    intervalMs,
    async work() {
      const hasMore = await transaction(pool, step)
      if (hasMore) await delay(pauseMs)
      return hasMore
    },
    onError: (err) => logger.warn({ err }, 'failed to delete expired visitors; retrying'),
  })
}

export function visitorCutoffs(
  cutoffs: { organization_id: string; visitors_before: number | null }[],
): VisitorCutoffs {
  const latest = new Map<string, number>()
  for (const { organization_id, visitors_before } of cutoffs)
    if (visitors_before !== null)
      latest.set(organization_id, Math.max(visitors_before, latest.get(organization_id) ?? 0))
  return latest
}
