import type { Position } from '../../../infra/log/port.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { eventTopics } from '../../../schemas/events.ts'

/** Those of the deliveries that a dispatcher is making now. */
export async function leasedDeliveries(db: Db, deliveryIds: readonly string[]): Promise<Set<string>> {
  if (deliveryIds.length === 0) return new Set()
  const { rows } = await db.query<{ delivery_id: string }>({
    name: 'webhook-leased',
    text: `select delivery_id from tidegate.webhook_leases where delivery_id = any($1)`,
    values: [deliveryIds],
  })
  return new Set(rows.map((row) => row.delivery_id))
}

/**
 * The owner's leases among $2, locked one after the other in the order of their ids: statements that change many at
 * once run beside each other, and in two different orders they would wait for each other until Postgres ends one.
 */
const lockedInOrder = `
  select delivery_id from tidegate.webhook_leases where owner = $1 and delivery_id = any($2)
  order by delivery_id for update`

export interface OwnedLeases {
  owner: string
  deliveryIds: string[]
}

/**
 * Moves the end of leases to `leaseMs` from now, by the database's clock; returns those that are still the owner's.
 * An expired one too: whoever is about to delete it deletes only what it saw.
 */
export async function renewLeases(
  db: Db,
  { owner, deliveryIds, leaseMs }: OwnedLeases & { leaseMs: number },
): Promise<Set<string>> {
  const { rows } = await db.query<{ delivery_id: string }>({
    name: 'webhook-renew',
    text: `update tidegate.webhook_leases set expires_at = clock_timestamp() + $3 * interval '1 millisecond'
           where delivery_id in (${lockedInOrder}) returning delivery_id`,
    values: [owner, deliveryIds, leaseMs],
  })
  return new Set(rows.map((row) => row.delivery_id))
}

/** The requests of these deliveries have ended, so that others may be made to their endpoints. */
export async function endSending(db: Db, { owner, deliveryIds }: OwnedLeases): Promise<void> {
  await db.query({
    name: 'webhook-end-sending',
    text: `update tidegate.webhook_leases set sending = false where delivery_id in (${lockedInOrder})`,
    values: [owner, deliveryIds],
  })
}

/** Gives leases back of which nothing was recorded: the deliveries are due again at once. */
export async function abandonLeases(db: Db, { owner, deliveryIds }: OwnedLeases): Promise<void> {
  await db.query(`delete from tidegate.webhook_leases where delivery_id in (${lockedInOrder})`, [
    owner,
    deliveryIds,
  ])
}

export interface Recorded {
  deliveryId: string
  /** Where on the log it stands what became of the delivery. */
  position: Position
}

/**
 * Gives back the leases whose record the read model shows, and returns their deliveries; the others stay. The
 * statement itself looks at how far the read model is: a database that crashed after it told of an advance may have
 * lost it, and without its lease the delivery would be made again.
 */
export async function releaseApplied(
  db: Db,
  { owner, recorded }: { owner: string; recorded: Recorded[] },
): Promise<Set<string>> {
  const { rows } = await db.query<{ delivery_id: string }>({
    name: 'webhook-release',
    text: `
      with applied as (
        select r.delivery_id
        from unnest($2::text[], $3::integer[], $4::bigint[]) as r(delivery_id, partition, record_offset)
        join tidegate.projection_offsets o on o.topic = $5 and o.partition = r.partition
        join tidegate.projection_builds b using (projection, build)
        where b.projection = 'webhooks' and b.status = 'live' and o.next_offset > r.record_offset
      ), locked as (
        select delivery_id from tidegate.webhook_leases
        where owner = $1 and delivery_id in (select delivery_id from applied)
        order by delivery_id for update
      ), released as (
        delete from tidegate.webhook_leases where delivery_id in (select delivery_id from locked)
      )
      select delivery_id from applied`,
    values: [
      owner,
      recorded.map(({ deliveryId }) => deliveryId),
      recorded.map(({ position }) => position.partition),
      recorded.map(({ position }) => position.offset),
      eventTopics.WebhookDeliveryAttempted,
    ],
  })
  return new Set(rows.map((row) => row.delivery_id))
}

/** A lease that nobody renewed in time, as it was seen. */
export interface ExpiredLease {
  deliveryId: string
  owner: string
  /** As the database prints it: a JavaScript date would lose microseconds, and the comparison with it. */
  expiresAt: string
}

/** Up to 1,000 leases that have expired, by the database's clock, but for those of `except`. */
export async function expiredLeases(db: Db, { except }: { except: string[] }): Promise<ExpiredLease[]> {
  const { rows } = await db.query<ExpiredLease>({
    name: 'webhook-expired',
    text: `select delivery_id as "deliveryId", owner, expires_at::text as "expiresAt" from tidegate.webhook_leases
           where expires_at < clock_timestamp() and delivery_id <> all($1) limit 1000`,
    values: [except],
  })
  return rows
}

/** Deletes the leases that still are what they were seen to be; returns how many. */
export async function deleteExpired(db: Db, seen: ExpiredLease[]): Promise<number> {
  const { rowCount } = await db.query(
    `delete from tidegate.webhook_leases l
     using unnest($1::text[], $2::text[], $3::text[]) as seen(delivery_id, owner, expires_at)
     where l.delivery_id = seen.delivery_id and l.owner = seen.owner and l.expires_at = seen.expires_at::timestamptz`,
    [
      seen.map(({ deliveryId }) => deliveryId),
      seen.map(({ owner }) => owner),
      seen.map(({ expiresAt }) => expiresAt),
    ],
  )
  return rowCount ?? 0
}
