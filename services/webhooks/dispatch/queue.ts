import { LRUCache } from 'lru-cache'
import type pg from 'pg'
import type { Clock } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { type ConcurrencyLimits, type DueEndpoint, maxPerEndpoint, type Quota } from './concurrency.ts'
import { endRequests } from './visibility.ts'

interface ReceiveOptions {
  /** Commits without waiting for the disk. */
  pool: pg.Pool
  owner: string
  visibilityTimeoutMs: number
  clock: Clock
  limits: ConcurrencyLimits
}

export interface FreeRequests {
  free: number
  ended: string[]
}

export interface ReceivedBatch {
  deliveries: ReceivedDelivery[]
  /** Whether more may be due than was received, so that it is worth another look when requests end. */
  hasMore: boolean
  /** When something may be receivable that is not now (epoch milliseconds); Infinity for nothing. */
  nextAt: number
}

// Back-off where another process had an endpoint locked; twice as long each time, up to the last.
const contendedMs = { first: 20, last: 500 }

/** Receives due deliveries, which are then hidden from other processes for the visibility timeout. */
export function createReceive({ pool, owner, visibilityTimeoutMs, clock, limits }: ReceiveOptions) {
  const withLock = new LRUCache<string, true>({ max: 10_000 })
  let waitMs = contendedMs.first

  async function makeLocks(quotas: Quota[]): Promise<void> {
    const unknown = quotas.map(({ endpointId }) => endpointId).filter((id) => !withLock.has(id))
    if (unknown.length === 0) return
    await createEndpointLocks(pool, unknown)
    for (const id of unknown) withLock.set(id, true)
  }

  /**
   * A row that could not be locked is another process's, or lost: rows are committed without waiting for the disk, and
   * the database may have crashed. They are made again before the next look.
   */
  function lookAgainIn(quotas: Quota[], contended: boolean): number {
    if (!contended) {
      waitMs = contendedMs.first
      return Infinity
    }
    for (const { endpointId } of quotas) withLock.delete(endpointId)
    const ms = waitMs
    waitMs = Math.min(2 * waitMs, contendedMs.last)
    return ms
  }

  return async ({ free, ended }: FreeRequests): Promise<ReceivedBatch> => {
    const now = clock()
    const due = await dueEndpoints(pool, { now })
    const { quotas, hasMore, pausedMs } = limits.allocate(due.endpoints, free)
    const nextAt = Math.min(due.nextAt, now + Math.ceil(pausedMs))
    if (quotas.length === 0) {
      if (ended.length > 0) await endRequests(pool, { owner, deliveryIds: ended })
      return { deliveries: [], hasMore, nextAt }
    }
    await makeLocks(quotas)
    const { deliveries, contended } = await receiveDue(pool, {
      owner,
      visibilityTimeoutMs,
      ended,
      free,
      quotas,
      now,
    })
    return { deliveries, hasMore, nextAt: Math.min(nextAt, now + lookAgainIn(quotas, contended)) }
  }
}

interface Due {
  endpoints: DueEndpoint[]
  nextAt: number
}

const mostCounted = 20

interface DueOptions {
  now: number
  firstRows?: number
  pageSize?: number
}

/**
 * The endpoints that have something due. The first 1,000 due deliveries are usually all there are. Where more are due,
 * the index is asked once for each endpoint, so a queue of a million for a dead endpoint costs the others nothing.
 */
export async function dueEndpoints(
  db: Db,
  { now, firstRows = 1000, pageSize = 500 }: DueOptions,
): Promise<Due> {
  const { rows, endpoints, nextAt } = await firstDue(db, { now, firstRows })
  if (rows < firstRows) return { endpoints, nextAt }
  const all: DueEndpoint[] = []
  for (let after = ''; ; after = all.at(-1)?.endpointId ?? '') {
    const page = await duePage(db, { now, after, pageSize })
    all.push(...page)
    if (page.length < pageSize) return { endpoints: all, nextAt }
  }
}

interface FirstDue extends Due {
  rows: number
}

async function firstDue(db: Db, { now, firstRows }: { now: number; firstRows: number }): Promise<FirstDue> {
  const { rows } = await db.query<{ nextAt: number | null; endpoints: DueEndpoint[] | null }>({
    name: 'webhook-first-due',
    text: `
      with first as materialized (
        select endpoint_id, organization_id from read.webhook_deliveries
        where next_attempt_at <= $1 order by next_attempt_at limit $2)
      select
        (select min(next_attempt_at) from read.webhook_deliveries where next_attempt_at > $1)::float8 as "nextAt",
        (select json_agg(json_build_object('endpointId', endpoint_id, 'organizationId', organization_id, 'due', n)
                         order by endpoint_id)
          from (select endpoint_id, organization_id, count(*) as n from first group by 1, 2) e) as endpoints`,
    values: [now, firstRows],
  })
  const endpoints = rows[0]?.endpoints ?? []
  return {
    endpoints,
    nextAt: rows[0]?.nextAt ?? Infinity,
    rows: endpoints.reduce((sum, { due }) => sum + due, 0),
  }
}

interface Page {
  now: number
  after: string
  pageSize: number
}

async function duePage(db: Db, { now, after, pageSize }: Page): Promise<DueEndpoint[]> {
  const { rows } = await db.query<DueEndpoint>({
    name: 'webhook-due-page',
    text: `
      with recursive found as (
        (select endpoint_id, organization_id, 1 as place from read.webhook_deliveries
          where endpoint_id > $2 and next_attempt_at <= $1
          order by endpoint_id, next_attempt_at limit 1)
        union all
        select next.* from found, lateral (
          select endpoint_id, organization_id, found.place + 1 from read.webhook_deliveries
           where endpoint_id > found.endpoint_id and next_attempt_at <= $1
           order by endpoint_id, next_attempt_at limit 1) next
         where found.place < $3
      )
      select endpoint_id as "endpointId", organization_id as "organizationId", (
        select count(*)::int from (
          select from read.webhook_deliveries d
          where d.endpoint_id = found.endpoint_id and d.next_attempt_at <= $1
          order by d.next_attempt_at limit ${mostCounted}) counted) as due
      from found order by place`,
    values: [now, after, pageSize],
  })
  return rows
}

/** Makes the rows that are locked for an endpoint, where there are none yet. */
export async function createEndpointLocks(db: Db, endpointIds: string[]): Promise<void> {
  await db.query(
    `insert into tidegate.webhook_lanes (endpoint_id) select * from unnest($1::text[]) order by 1
     on conflict do nothing`,
    [endpointIds],
  )
}

export interface ReceivedDelivery {
  id: string
  eventId: string
  endpointId: string
  organizationId: string
  attempts: number
  attemptsInRound: number
  dueAt: number
}

export interface ReceiveRequest {
  owner: string
  visibilityTimeoutMs: number
  /** Deliveries of the owner whose requests have ended: they no longer count as in flight at their endpoint. */
  ended: string[]
  free: number
  quotas: Quota[]
  now: number
}

interface ReceiveResult {
  deliveries: ReceivedDelivery[]
  /** Whether another process had some of the endpoints locked, where something may be left. */
  contended: boolean
}

export async function receiveDue(db: Db, request: ReceiveRequest): Promise<ReceiveResult> {
  const { owner, visibilityTimeoutMs, ended, quotas, now, free } = request
  const { rows } = await db.query<{ lanes: number; deliveries: ReceivedDelivery[] | null }>({
    name: 'webhook-lease',
    text: 'select lanes, deliveries from tidegate.lease_webhooks($1, $2, $3, $4, $5, $6, $7, $8)',
    values: [
      owner,
      visibilityTimeoutMs,
      ended,
      quotas.map(({ endpointId }) => endpointId),
      quotas.map(({ max }) => max),
      now,
      free,
      maxPerEndpoint,
    ],
  })
  const [{ lanes, deliveries } = { lanes: 0, deliveries: null }] = rows
  return { deliveries: deliveries ?? [], contended: lanes < quotas.length }
}
