import type pg from 'pg'
import { databaseNow, leaseColumns } from '../../infra/postgres/lease.ts'
import { ddlOf, type Migrations } from '../../infra/postgres/migrations.ts'
import { type Db, lockKey, queryAll, transaction } from '../../infra/postgres/pool.ts'
import { column, table } from '../../infra/postgres/table.ts'

/*
 * Leases of webhook deliveries. The read model `read.webhook_deliveries` is the queue, and a lease hides one attempt of
 * a delivery from other processes:
 *
 * - `sending`: the attempt is in progress. Its process renews the lease. The reaper (dispatch/lease-upkeep.ts) deletes
 *   an expired lease, and the delivery is due again.
 * - `recorded`: the attempt is on the log. The lease is deleted once the read model has the attempt.
 */

/** Maximum requests in flight to one endpoint, across all processes. */
export const maxPerEndpoint = 10

const leases = table(
  'tidegate.webhook_leases',
  {
    delivery_id: column.id(),
    attempt: column.integer(),
    /** Part of the key, because a redelivery after a skip has the same attempt number but another due time. */
    due_at: column.bigint(),
    event_id: column.id(),
    endpoint_id: column.id(),
    state: column.text<'sending' | 'recorded'>(),
    ...leaseColumns,
  },
  {
    key: ['delivery_id', 'attempt', 'due_at'],
    storage: 'fillfactor = 70',
    indexes: [`(endpoint_id) where state = 'sending'`],
  },
)

export const leaseMigrations: Migrations = { name: 'webhook-leases', create: ddlOf(leases) }

// True for deliveries `d` whose next attempt no process has leased.
const isUnleasedSql = `not exists (
  select from tidegate.webhook_leases l
  where l.delivery_id = d.delivery_id and l.attempt = d.attempts + 1 and l.due_at = d.next_attempt_at)`

// Due deliveries of one endpoint, oldest first. With `=` instead of `between`, PostgreSQL may scan all due deliveries
// by time and filter out the other endpoints.
const dueDeliveriesSql = (endpointId: string, now: string) => `
  from read.webhook_deliveries d
  where d.endpoint_id between ${endpointId} and ${endpointId} and d.next_attempt_at <= ${now} and ${isUnleasedSql}
  order by d.endpoint_id, d.next_attempt_at`

export interface DueEndpoint {
  endpointId: string
  organizationId: string
  /** Number of due deliveries that are not leased; counted only up to 10 if many are due in all. */
  due: number
}

/** Maximum number of deliveries to take for an endpoint. */
export interface Quota {
  endpointId: string
  max: number
}

/**
 * Returns the endpoints with due deliveries. Usually fewer than `firstRows` deliveries are due, and one query finds them
 * all. Otherwise reads the index once per endpoint, so that a million deliveries due for a dead endpoint don't slow down
 * the others.
 */
export async function findDueEndpoints(
  db: Db,
  { now, firstRows = 256 }: { now: number; firstRows?: number },
): Promise<DueEndpoint[]> {
  const { rows } = await db.query<DueEndpoint>({
    name: 'webhook-due',
    text: `
      select endpoint_id as "endpointId", organization_id as "organizationId", count(*)::int as due from (
        select endpoint_id, organization_id from read.webhook_deliveries d
        where next_attempt_at <= $1 and ${isUnleasedSql} order by next_attempt_at limit $2) first
      group by 1, 2 order by 1`,
    values: [now, firstRows],
  })
  const count = rows.reduce((sum, { due }) => sum + due, 0)
  return count < firstRows ? rows : await scanDueEndpoints(db, now)
}

// Does a loose index scan over the endpoints, which reads only a few index entries of each.
async function scanDueEndpoints(db: Db, now: number): Promise<DueEndpoint[]> {
  const nextEndpoint =
    'select endpoint_id from read.webhook_deliveries where next_attempt_at is not null'
  const { rows } = await db.query<DueEndpoint>({
    name: 'webhook-due-endpoints',
    text: `
      with recursive waiting as (
        (${nextEndpoint} order by endpoint_id limit 1)
        union all
        select next.endpoint_id from waiting cross join lateral (
          ${nextEndpoint} and endpoint_id > waiting.endpoint_id order by endpoint_id limit 1) next)
      select endpoint_id as "endpointId", organization_id as "organizationId", due
      from waiting cross join lateral (
        select organization_id, count(*)::int as due from (
          select organization_id ${dueDeliveriesSql('waiting.endpoint_id', '$1')} limit ${maxPerEndpoint}) first
        group by 1) counted
      order by 1`,
    values: [now],
  })
  return rows
}

export interface TakenDelivery {
  id: string
  eventId: string
  endpointId: string
  organizationId: string
  attempts: number
  attemptsInRound: number
  dueAt: number
  /** null if the event is not traced. */
  traceparent: string | null
}

interface Owner {
  owner: string
}

const takeLock = lockKey('tidegate:webhook-leases')

/**
 * Leases due deliveries and returns them, round-robin by endpoint. A lock lets one process take deliveries at a time,
 * so that the limit per endpoint is exact. The lock is a separate statement, so that the snapshot of the next one
 * includes the leases that other processes changed meanwhile.
 */
export async function takeDeliveries(
  pool: pg.Pool,
  {
    owner,
    leaseMs,
    quotas,
    max,
    now,
  }: Owner & { leaseMs: number; quotas: readonly Quota[]; max: number; now: number },
): Promise<TakenDelivery[]> {
  const lock = { text: 'select pg_advisory_xact_lock($1)', values: [takeLock] }
  const leaseDue = {
    name: 'webhook-take',
    text: takeSql,
    values: [
      quotas.map(({ endpointId }) => endpointId),
      quotas.map((quota) => quota.max),
      max,
      now,
      owner,
      leaseMs,
    ],
  }
  return transaction(pool, async (tx) => {
    const [, taken = []] = await queryAll<TakenDelivery>(tx, lock, leaseDue)
    return taken
  })
}

const takeSql = `
  with picked as materialized (
    select due.*, row_number() over (partition by endpoint_id order by next_attempt_at) as turn
    from unnest($1::text[], $2::integer[]) as quota (id, max)
    cross join lateral (
      select delivery_id, event_id, endpoint_id, organization_id, attempts, attempts_in_round, next_attempt_at
      ${dueDeliveriesSql('quota.id', '$4')}
      limit greatest(0, least(quota.max, ${maxPerEndpoint} - (
        select count(*) from tidegate.webhook_leases l where l.endpoint_id = quota.id and l.state = 'sending')))
    ) due
    order by turn, next_attempt_at limit $3
  ), leased as (
    insert into tidegate.webhook_leases (${leases.names})
    select delivery_id, attempts + 1, next_attempt_at, event_id, endpoint_id, 'sending', $5, ${databaseNow} + $6
    from picked
  )
  select delivery_id as id, event_id as "eventId", endpoint_id as "endpointId",
    picked.organization_id as "organizationId", attempts, attempts_in_round as "attemptsInRound",
    next_attempt_at::float8 as "dueAt", traceparent
  from picked left join read.webhook_events using (event_id) order by turn, next_attempt_at`

/** Returns the ids of the deliveries that a process is sending. */
export async function findInFlightDeliveries(
  db: Db,
  deliveryIds: readonly string[],
): Promise<Set<string>> {
  if (deliveryIds.length === 0) return new Set()
  const { rows } = await db.query<{ delivery_id: string }>({
    name: 'webhook-in-flight',
    text: `select delivery_id from tidegate.webhook_leases where delivery_id = any($1) and state = 'sending'`,
    values: [deliveryIds],
  })
  return new Set(rows.map((row) => row.delivery_id))
}

// Leases of owner $1 among the deliveries $2. Locks the rows in a fixed order, so that concurrent statements don't
// deadlock. With `= 'sending'`, PostgreSQL may scan the index of all deliveries being sent.
const isOwnedSql = `
  state <> 'recorded' and owner = $1 and delivery_id in (
    select delivery_id from tidegate.webhook_leases where state <> 'recorded' and owner = $1 and delivery_id = any($2)
    order by delivery_id for update)`

type OwnedDeliveries = Owner & { deliveryIds: readonly string[] }

/** Renews leases, including expired ones that nobody has released yet. Returns the ids of deliveries still held. */
export async function renewLeases(
  db: Db,
  { owner, deliveryIds, leaseMs }: OwnedDeliveries & { leaseMs: number },
): Promise<Set<string>> {
  const { rows } = await db.query<{ delivery_id: string }>({
    name: 'webhook-renew',
    text: `update tidegate.webhook_leases set expires_at = ${databaseNow} + $3 where ${isOwnedSql} returning delivery_id`,
    values: [owner, deliveryIds, leaseMs],
  })
  return new Set(rows.map((row) => row.delivery_id))
}

/** Deletes leases, so that the deliveries are due again at once. */
export async function requeueDeliveries(
  db: Db,
  { owner, deliveryIds }: OwnedDeliveries,
): Promise<void> {
  await db.query({
    name: 'webhook-put-back',
    text: `delete from tidegate.webhook_leases where ${isOwnedSql}`,
    values: [owner, deliveryIds],
  })
}

/** Marks leases whose attempts are on the log. */
export async function markRecorded(db: Db, { owner, deliveryIds }: OwnedDeliveries): Promise<void> {
  await db.query({
    name: 'webhook-mark-recorded',
    text: `update tidegate.webhook_leases set state = 'recorded' where ${isOwnedSql}`,
    values: [owner, deliveryIds],
  })
}

export interface ExpiredLeases {
  leases: { deliveryId: string; eventId: string }[]
  /** Time of the query by the database's clock, epoch milliseconds; 0 if there are no leases. */
  asOf: number
}

/** Returns expired leases, except those of `ownDeliveryIds`, which this process still renews. */
export async function findExpiredLeases(
  db: Db,
  ownDeliveryIds: readonly string[],
): Promise<ExpiredLeases> {
  const { rows } = await db.query<{ deliveryId: string; eventId: string; asOf: number }>({
    name: 'webhook-expired',
    text: `
      select delivery_id as "deliveryId", event_id as "eventId", now.ms::float8 as "asOf"
      from (select ${databaseNow} as ms) now cross join tidegate.webhook_leases
      where state = 'sending' and expires_at < now.ms and delivery_id <> all($1)`,
    values: [ownDeliveryIds],
  })
  return { leases: rows, asOf: rows[0]?.asOf ?? 0 }
}

/** Deletes leases that had expired by `asOf` and were not renewed since. Returns the number of deleted leases. */
export async function releaseLeases(
  db: Db,
  { deliveryIds, asOf }: { deliveryIds: readonly string[]; asOf: number },
): Promise<number> {
  const isExpired = `state = 'sending' and expires_at < $2`
  const { rowCount } = await db.query({
    name: 'webhook-release',
    text: `delete from tidegate.webhook_leases where ${isExpired} and delivery_id in (
      select delivery_id from tidegate.webhook_leases where ${isExpired} and delivery_id = any($1)
      order by delivery_id for update)`,
    values: [deliveryIds, asOf],
  })
  return rowCount ?? 0
}

const maxPurged = 10_000

/**
 * Deletes leases of recorded attempts that the read model has. Checks and deletes in one statement, so that other
 * processes always see the lease or the attempt. The sum with 0 prevents an index scan by due time, which many deliveries
 * of a resend share. Returns true if there may be more.
 */
export async function purgeRecorded(db: Db): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'webhook-purge-recorded',
    text: `
      delete from tidegate.webhook_leases where ctid = any(array(
        select l.ctid from tidegate.webhook_leases l
        where l.state = 'recorded' and not exists (
          select from read.webhook_deliveries d
          where d.delivery_id = l.delivery_id and d.attempts + 1 = l.attempt and d.next_attempt_at + 0 = l.due_at)
        limit ${maxPurged} for update skip locked))`,
  })
  return rowCount === maxPurged
}
