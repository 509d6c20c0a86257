import type pg from 'pg'
import { databaseNow, leaseColumns } from '../../infra/postgres/lease.ts'
import { ddlOf, type Migrations } from '../../infra/postgres/migrations.ts'
import { type Db, lockKey, queryAll, transaction } from '../../infra/postgres/pool.ts'
import { column, table } from '../../infra/postgres/table.ts'

/** Requests in flight to one endpoint, over all processes. */
export const maxPerEndpoint = 10

/**
 * Attempts that were taken. The read model says which attempt is due, and its lease hides it from other processes:
 * `sending` until it expires, `recorded` (the attempt is on the log) until the read model shows the attempt.
 */
const leases = table(
  'tidegate.webhook_leases',
  {
    delivery_id: column.id(),
    attempt: column.integer(),
    /** A skipped attempt that is requested again has the same number, but is due at another time. */
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

// Deliveries `d` of the read model whose next attempt nobody has taken.
const isFree = `not exists (
  select from tidegate.webhook_leases l
  where l.delivery_id = d.delivery_id and l.attempt = d.attempts + 1 and l.due_at = d.next_attempt_at)`

// Due deliveries of one endpoint, oldest first. The range makes Postgres read the index that begins with the endpoint:
// by an equality it may read all due deliveries in order of time, and leave out those of other endpoints.
const dueOf = (endpointId: string, now: string) => `
  from read.webhook_deliveries d
  where d.endpoint_id between ${endpointId} and ${endpointId} and d.next_attempt_at <= ${now} and ${isFree}
  order by d.endpoint_id, d.next_attempt_at`

export interface DueEndpoint {
  endpointId: string
  organizationId: string
  /** Deliveries that are due and not in flight; where there are many, counted up to 10. */
  due: number
}

/** Maximum number of deliveries to take for an endpoint. */
export interface Quota {
  endpointId: string
  max: number
}

/**
 * Returns the endpoints that have something due. The first 1,000 due deliveries are usually all there are. Where more
 * are due, the index is read once for each endpoint, so a million for a dead endpoint cost the others nothing.
 */
export async function dueEndpoints(
  db: Db,
  { now, firstRows = 1000 }: { now: number; firstRows?: number },
): Promise<DueEndpoint[]> {
  const { rows } = await db.query<DueEndpoint>({
    name: 'webhook-due',
    text: `
      select endpoint_id as "endpointId", organization_id as "organizationId", count(*)::int as due from (
        select endpoint_id, organization_id from read.webhook_deliveries d
        where next_attempt_at <= $1 and ${isFree} order by next_attempt_at limit $2) first
      group by 1, 2 order by 1`,
    values: [now, firstRows],
  })
  const found = rows.reduce((sum, { due }) => sum + due, 0)
  return found < firstRows ? rows : await eachDueEndpoint(db, now)
}

// Steps from endpoint to endpoint first: a search for due deliveries would read all that are due later on its way.
async function eachDueEndpoint(db: Db, now: number): Promise<DueEndpoint[]> {
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
          select organization_id ${dueOf('waiting.endpoint_id', '$1')} limit ${maxPerEndpoint}) first
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
  /** As a `traceparent`; null where nobody traces the event. */
  traceparent: string | null
}

interface Owner {
  owner: string
}

const takeLock = lockKey('tidegate:webhook-leases')

/**
 * Takes due deliveries, one of each endpoint before a second of any, with a lease. One process at a time takes, so that
 * the count of an endpoint is exact. The lock is a statement of its own: the next one has a snapshot that was made after
 * the wait, and sees in it the leases, what is due, and what both were when a lease ended meanwhile.
 */
export async function take(
  pool: pg.Pool,
  {
    owner,
    leaseMs,
    quotas,
    free,
    now,
  }: Owner & { leaseMs: number; quotas: readonly Quota[]; free: number; now: number },
): Promise<TakenDelivery[]> {
  const lock = { text: 'select pg_advisory_xact_lock($1)', values: [takeLock] }
  const taking = {
    name: 'webhook-take',
    text: takeSql,
    values: [
      quotas.map(({ endpointId }) => endpointId),
      quotas.map(({ max }) => max),
      free,
      now,
      owner,
      leaseMs,
    ],
  }
  return transaction(pool, async (tx) => {
    const [, taken = []] = await queryAll<TakenDelivery>(tx, lock, taking)
    return taken
  })
}

const takeSql = `
  with picked as materialized (
    select due.*, row_number() over (partition by endpoint_id order by next_attempt_at) as turn
    from unnest($1::text[], $2::integer[]) as quota (id, max)
    cross join lateral (
      select delivery_id, event_id, endpoint_id, organization_id, attempts, attempts_in_round, next_attempt_at
      ${dueOf('quota.id', '$4')}
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

export async function inFlightDeliveries(
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

// The owner's among $2. They are locked in one order, because two statements that lock many would deadlock.
const isOwn = `
  state = 'sending' and owner = $1 and delivery_id in (
    select delivery_id from tidegate.webhook_leases where state = 'sending' and owner = $1 and delivery_id = any($2)
    order by delivery_id for update)`

type OwnDeliveries = Owner & { deliveryIds: readonly string[] }

/** Renews leases, expired ones too; returns the deliveries that are still the owner's. */
export async function renew(
  db: Db,
  { owner, deliveryIds, leaseMs }: OwnDeliveries & { leaseMs: number },
): Promise<Set<string>> {
  const { rows } = await db.query<{ delivery_id: string }>({
    name: 'webhook-renew',
    text: `update tidegate.webhook_leases set expires_at = ${databaseNow} + $3 where ${isOwn} returning delivery_id`,
    values: [owner, deliveryIds, leaseMs],
  })
  return new Set(rows.map((row) => row.delivery_id))
}

/** Gives deliveries back that were not attempted: they are due at once. */
export async function putBack(db: Db, { owner, deliveryIds }: OwnDeliveries): Promise<void> {
  await db.query({
    name: 'webhook-put-back',
    text: `delete from tidegate.webhook_leases where ${isOwn}`,
    values: [owner, deliveryIds],
  })
}

/** Marks deliveries whose attempts are on the log. */
export async function markRecorded(db: Db, { owner, deliveryIds }: OwnDeliveries): Promise<void> {
  await db.query({
    name: 'webhook-mark-recorded',
    text: `update tidegate.webhook_leases set state = 'recorded' where ${isOwn}`,
    values: [owner, deliveryIds],
  })
}

export interface ExpiredLeases {
  leases: { deliveryId: string; eventId: string }[]
  /** When they were looked up, by the database's clock. */
  asOf: number
}

/** The leases that have expired; `except` are deliveries whose leases their process still renews. */
export async function expiredLeases(db: Db, except: readonly string[]): Promise<ExpiredLeases> {
  const { rows } = await db.query<{ deliveryId: string; eventId: string; asOf: number }>({
    name: 'webhook-expired',
    text: `
      select delivery_id as "deliveryId", event_id as "eventId", now.ms::float8 as "asOf"
      from (select ${databaseNow} as ms) now cross join tidegate.webhook_leases
      where state = 'sending' and expires_at < now.ms and delivery_id <> all($1)`,
    values: [except],
  })
  return { leases: rows, asOf: rows[0]?.asOf ?? 0 }
}

/** Makes deliveries due again whose leases had expired by `asOf`; those that were renewed or taken since stay. */
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
 * Deletes leases of recorded attempts that the read model shows by now. The look and the deletion are one statement: who
 * does not see the lease any more sees the attempt. Returns whether there may be more.
 */
export async function purgeRecorded(db: Db): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'webhook-purge-recorded',
    text: `
      delete from tidegate.webhook_leases where (delivery_id, attempt, due_at) in (
        select delivery_id, attempt, due_at from tidegate.webhook_leases l
        where l.state = 'recorded' and not exists (
          select from read.webhook_deliveries d
          where d.delivery_id = l.delivery_id and d.attempts + 1 = l.attempt and d.next_attempt_at = l.due_at)
        limit ${maxPurged} for update skip locked)`,
  })
  return rowCount === maxPurged
}
