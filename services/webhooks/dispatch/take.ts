import type { Db } from '../../../infra/postgres/pool.ts'
import { maxPerEndpoint, type Room } from './window.ts'

/** An endpoint with deliveries that wait for an attempt. */
export interface WaitingEndpoint {
  endpointId: string
  /** When the first of them is due (epoch milliseconds). */
  firstAt: number
}

export interface WaitingPage {
  /** Endpoints whose id is greater come, in the order of their ids. */
  after: string
  limit: number
}

/**
 * Endpoints that deliveries wait for. It looks into the index once for each endpoint, however many wait for it: a
 * queue of a million for a dead endpoint costs the others nothing.
 */
export async function waitingEndpoints(db: Db, { after, limit }: WaitingPage): Promise<WaitingEndpoint[]> {
  const { rows } = await db.query<WaitingEndpoint>({
    name: 'webhook-waiting',
    text: `
      with recursive waiting as (
        (select endpoint_id, next_attempt_at, 1 as place from read.webhook_deliveries
          where endpoint_id > $1 and next_attempt_at is not null
          order by endpoint_id, next_attempt_at limit 1)
        union all
        select next.* from waiting, lateral (
          select endpoint_id, next_attempt_at, waiting.place + 1 from read.webhook_deliveries
           where endpoint_id > waiting.endpoint_id and next_attempt_at is not null
           order by endpoint_id, next_attempt_at limit 1) next
         where waiting.place < $2
      )
      select endpoint_id as "endpointId", next_attempt_at::float8 as "firstAt" from waiting order by place`,
    values: [after, limit],
  })
  return rows
}

/** Makes the lanes of endpoints that have none yet. */
export async function createLanes(db: Db, endpointIds: string[]): Promise<void> {
  await db.query(
    `insert into tidegate.webhook_lanes (endpoint_id) select * from unnest($1::text[]) order by 1
     on conflict do nothing`,
    [endpointIds],
  )
}

/** A delivery to make, as it was when it was leased. */
export interface LeasedDelivery {
  id: string
  eventId: string
  endpointId: string
  organizationId: string
  attempts: number
  attemptsInRound: number
  /** When it was due (epoch milliseconds). */
  dueAt: number
}

export interface LeaseRequest {
  owner: string
  leaseMs: number
  /** Deliveries of the owner whose requests have ended: they count no more. */
  ended: string[]
  /** How many deliveries at most. */
  free: number
  /** At which endpoints, and how many of each at most. */
  rooms: Room[]
  /** Epoch milliseconds. */
  now: number
}

export interface Leased {
  deliveries: LeasedDelivery[]
  /** Whether another process was at some of the endpoints, where something may be left. */
  contended: boolean
}

/**
 * Leases due deliveries, one of each endpoint before a second of any. Whoever has an endpoint's lane locked is alone
 * in leasing there, and nobody waits for a lane: with it locked the count of leases is exact, and no endpoint gets more
 * requests at once than it may, however many processes there are.
 *
 * The statement that leases has a snapshot of its own, taken with the lanes locked (volatile functions under read committed
 * do so): it sees the leases of whoever had them before. And a lease is given back only once the read model shows what
 * became of the delivery, so that a snapshot without the lease never shows the delivery as it was before. A function,
 * because the transaction in four round trips takes four times as long, and holds the lanes for all of it.
 */
export const leaseFunction = `
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

/** See `leaseFunction`. */
export async function leaseDue(db: Db, request: LeaseRequest): Promise<Leased> {
  const { owner, leaseMs, ended, rooms, now, free } = request
  const { rows } = await db.query<{ lanes: number; deliveries: LeasedDelivery[] | null }>({
    name: 'webhook-lease',
    text: 'select lanes, deliveries from tidegate.lease_webhooks($1, $2, $3, $4, $5, $6, $7, $8)',
    values: [
      owner,
      leaseMs,
      ended,
      rooms.map(({ endpointId }) => endpointId),
      rooms.map(({ room }) => room),
      now,
      free,
      maxPerEndpoint,
    ],
  })
  const [{ lanes, deliveries } = { lanes: 0, deliveries: null }] = rows
  return { deliveries: deliveries ?? [], contended: lanes < rooms.length }
}
