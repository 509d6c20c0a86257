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

const pageSize = 5000

// Each function goes through a table in the order of its key, because an index on when visitors were last seen would cost
// each session.
async function pruneVisitorsPage(
  tx: Tx,
  of: EndedVisitors,
  after = '',
): Promise<string | undefined> {
  const { rows } = await tx.query<{ last: string }>({
    name: 'prune-visitors-page',
    text: `with page as materialized (
        select visitor_id from scoring.visitors where visitor_id > $3 order by visitor_id limit ${pageSize}
      ),
      gone as (
        delete from scoring.visitors v using page, ${ended} where v.visitor_id = page.visitor_id
          and v.organization_id = ended.organization_id and v.last_seen_at < ended.before
      )
      select visitor_id as last from page order by visitor_id offset ${pageSize - 1}`,
    values: [[...of.keys()], [...of.values()], after],
  })
  return rows[0]?.last
}

interface KeyPlace {
  key: Buffer
  visitor_id: string
}

const firstKey: KeyPlace = { key: Buffer.alloc(0), visitor_id: '' }

async function pruneKeysPage(tx: Tx, after = firstKey): Promise<KeyPlace | undefined> {
  const { rows } = await tx.query<KeyPlace>({
    name: 'prune-visitor-keys-page',
    text: `with page as materialized (
        select key, visitor_id from scoring.visitor_keys where (key, visitor_id) > ($1, $2)
        order by key, visitor_id limit ${pageSize}
      ),
      gone as (
        delete from scoring.visitor_keys k using page where k.key = page.key and k.visitor_id = page.visitor_id
          and not exists (select from scoring.visitors v where v.visitor_id = page.visitor_id)
      )
      select key, visitor_id from page order by key, visitor_id offset ${pageSize - 1}`,
    values: [after.key, after.visitor_id],
  })
  return rows[0]
}

async function pruneLinksPage(tx: Tx, after = ''): Promise<string | undefined> {
  const { rows } = await tx.query<{ last: string }>({
    name: 'prune-links-page',
    text: `with page as materialized (
        select session_id, visitor_id from scoring.links where session_id > $1
        order by session_id limit ${pageSize}
      ),
      gone as (
        delete from scoring.links l using page where l.session_id = page.session_id
          and l.visitor_id = page.visitor_id
          and not exists (select from scoring.visitors v where v.visitor_id = page.visitor_id)
      )
      select session_id as last from page order by session_id offset ${pageSize - 1}`,
    values: [after],
  })
  return rows[0]?.last
}

interface PrunerOptions {
  pool: pg.Pool
  logger: Logger
  intervalMs?: number
}

type Walk = { of: 'visitors' | 'links'; after?: string } | { of: 'keys'; after?: KeyPlace }

async function walkOn(tx: Tx, ended: EndedVisitors, walk: Walk): Promise<Walk | undefined> {
  if (walk.of === 'visitors') {
    const after = await pruneVisitorsPage(tx, ended, walk.after)
    return after === undefined ? { of: 'keys' } : { of: 'visitors', after }
  }
  if (walk.of === 'keys') {
    const after = await pruneKeysPage(tx, walk.after)
    return after ? { of: 'keys', after } : { of: 'links' }
  }
  const after = await pruneLinksPage(tx, walk.after)
  if (after !== undefined) return { of: 'links', after }
  await pruneDevices(tx, ended, 'scoring.attested_devices')
  return undefined
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
  let walk: Walk | undefined
  let walkedFor = ''

  async function step(tx: Tx): Promise<boolean> {
    if (!(await tryLock(tx, 'tidegate:prune:scoring'))) return false
    const ended = endedVisitors(await findEndedData(tx))
    const name = JSON.stringify([...ended])
    if (ended.size > 0 && name !== walkedFor) walk ??= { of: 'visitors' }
    if (!walk) return false
    walk = await walkOn(tx, ended, walk)
    if (!walk) walkedFor = name
    return walk !== undefined
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
