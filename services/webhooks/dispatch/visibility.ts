import type { Position } from '../../../infra/log/port.ts'
import { ensureTables } from '../../../infra/postgres/ensure-tables.ts'
import type { Db, Tx } from '../../../infra/postgres/pool.ts'
import { eventTopics } from '../../../schemas/events.ts'

export async function inFlightDeliveries(db: Db, deliveryIds: readonly string[]): Promise<Set<string>> {
  if (deliveryIds.length === 0) return new Set()
  const { rows } = await db.query<{ delivery_id: string }>({
    name: 'webhook-leased',
    text: `select delivery_id from tidegate.webhook_leases where delivery_id = any($1)`,
    values: [deliveryIds],
  })
  return new Set(rows.map((row) => row.delivery_id))
}

/**
 * The owner's rows among $2, locked in the order of their ids: two statements that lock many rows in different orders
 * would wait for each other until Postgres ends one.
 */
const lockedInOrder = `
  select delivery_id from tidegate.webhook_leases where owner = $1 and delivery_id = any($2)
  order by delivery_id for update`

interface OwnedDeliveries {
  owner: string
  deliveryIds: string[]
}

/**
 * Starts the visibility timeouts anew, by the database's clock; returns the deliveries that are still the owner's. An
 * expired one too: the process that is about to delete it deletes only what it saw.
 */
export async function renewVisibility(
  db: Db,
  { owner, deliveryIds, visibilityTimeoutMs }: OwnedDeliveries & { visibilityTimeoutMs: number },
): Promise<Set<string>> {
  const { rows } = await db.query<{ delivery_id: string }>({
    name: 'webhook-renew',
    text: `update tidegate.webhook_leases set expires_at = clock_timestamp() + $3 * interval '1 millisecond'
           where delivery_id in (${lockedInOrder}) returning delivery_id`,
    values: [owner, deliveryIds, visibilityTimeoutMs],
  })
  return new Set(rows.map((row) => row.delivery_id))
}

/** The requests have ended, so they no longer count towards the limits of their endpoints. */
export async function endRequests(db: Db, { owner, deliveryIds }: OwnedDeliveries): Promise<void> {
  await db.query({
    name: 'webhook-end-sending',
    text: `update tidegate.webhook_leases set sending = false where delivery_id in (${lockedInOrder})`,
    values: [owner, deliveryIds],
  })
}

export async function makeVisible(db: Db, { owner, deliveryIds }: OwnedDeliveries): Promise<void> {
  await db.query(`delete from tidegate.webhook_leases where delivery_id in (${lockedInOrder})`, [
    owner,
    deliveryIds,
  ])
}

interface RecordedDelivery {
  deliveryId: string
  position: Position
}

/**
 * Ends the visibility timeouts of deliveries whose record the read model shows, and returns those. The statement
 * itself reads how far the read model is. A database that crashed after it notified us of an advance may have lost
 * it, and the delivery would be made again.
 */
export async function releaseApplied(
  db: Db,
  { owner, recorded }: { owner: string; recorded: RecordedDelivery[] },
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

/** A delivery whose visibility timeout was not renewed in time, as it was seen. */
export interface ExpiredDelivery {
  deliveryId: string
  owner: string
  /** As the database prints it: a JavaScript date would lose microseconds, and the comparison with it. */
  expiresAt: string
}

/** Up to 1,000 whose timeout has expired, by the database's clock, but for those of `except`. */
export async function findExpired(db: Db, { except }: { except: string[] }): Promise<ExpiredDelivery[]> {
  const { rows } = await db.query<ExpiredDelivery>({
    name: 'webhook-expired',
    text: `select delivery_id as "deliveryId", owner, expires_at::text as "expiresAt" from tidegate.webhook_leases
           where expires_at < clock_timestamp() and delivery_id <> all($1) limit 1000`,
    values: [except],
  })
  return rows
}

export async function makeExpiredVisible(db: Db, seen: ExpiredDelivery[]): Promise<number> {
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

/**
 * Receives due deliveries, one of each endpoint before a second of any. It locks the endpoints' rows in webhook_lanes
 * and skips those that are locked, so nobody waits. With the row locked the count of webhook_leases is exact, and no
 * endpoint gets more requests at once than it may, however many processes there are.
 *
 * The statement that inserts has a snapshot of its own, made after the locks (volatile functions under read committed do
 * so): it sees what the lock's last owner inserted. A row is deleted only once the read model shows what became of the
 * delivery, so a snapshot without the row never shows the delivery as it was before. It is a function because the
 * transaction in four round trips takes four times as long, with the rows locked for all of it.
 */
const receiveFunction = `
create or replace function tidegate.lease_webhooks(
  lease_owner text, lease_ms integer, ended text[], endpoint_ids text[], rooms integer[], due_by bigint, free integer,
  max_per_endpoint integer, out lanes integer, out deliveries json
) language plpgsql volatile as $$
declare
  locked text[];
begin
  -- In the order of their ids, as every statement that changes many leases locks them.
  update tidegate.webhook_leases set sending = false where delivery_id in (
    select delivery_id from tidegate.webhook_leases where owner = lease_owner and delivery_id = any(ended)
    order by delivery_id for update);
  select array_agg(endpoint_id) into locked from (
    select endpoint_id from tidegate.webhook_lanes where endpoint_id = any(endpoint_ids) for update skip locked) l;
  with picked as (
    select due.*, row_number() over (partition by lane.endpoint_id order by next_attempt_at) as turn
    from unnest(endpoint_ids, rooms) as lane(endpoint_id, room)
    cross join lateral (
      select d.delivery_id, d.event_id, d.endpoint_id, d.organization_id, d.attempts, d.attempts_in_round,
             d.next_attempt_at
      from read.webhook_deliveries d
      where d.endpoint_id = lane.endpoint_id and d.next_attempt_at <= due_by
        and not exists (select from tidegate.webhook_leases l where l.delivery_id = d.delivery_id)
      order by d.next_attempt_at, d.delivery_id
      limit greatest(0, least(lane.room, max_per_endpoint - (
        select count(*) from tidegate.webhook_leases l where l.endpoint_id = lane.endpoint_id and l.sending)))
    ) due
    where lane.endpoint_id = any(locked)
    order by turn, next_attempt_at limit free
  ), leased as (
    insert into tidegate.webhook_leases (delivery_id, endpoint_id, owner, expires_at)
    select delivery_id, endpoint_id, lease_owner, clock_timestamp() + lease_ms * interval '1 millisecond' from picked
    on conflict do nothing returning delivery_id
  )
  select json_agg(json_build_object(
    'id', delivery_id, 'eventId', event_id, 'endpointId', endpoint_id, 'organizationId', organization_id,
    'attempts', attempts, 'attemptsInRound', attempts_in_round, 'dueAt', next_attempt_at) order by turn, next_attempt_at)
  into deliveries from picked join leased using (delivery_id);
  lanes := coalesce(cardinality(locked), 0);
end $$;
`

/**
 * Deliveries in flight, and a row to lock for each endpoint. Operational state and no read model: it is in no event, and
 * a rebuild does not touch it. `sending` is false once the request has ended and only its record is on the way.
 */
const ddl = `
create table if not exists tidegate.webhook_lanes (
  endpoint_id text collate "C" primary key
);
create table if not exists tidegate.webhook_leases (
  delivery_id text collate "C" primary key,
  endpoint_id text collate "C" not null,
  owner text not null,
  sending boolean not null default true,
  expires_at timestamptz not null
) with (fillfactor = 70);
create index if not exists webhook_leases_endpoint on tidegate.webhook_leases (endpoint_id);
${receiveFunction}`

export function createQueueTables(tx: Tx): Promise<void> {
  return ensureTables(tx, { name: 'webhook-leases', table: 'tidegate.webhook_leases', ddl })
}
