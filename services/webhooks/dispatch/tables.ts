import { ensureTables } from '../../../infra/postgres/ensure-tables.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'

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
const leaseFunction = `
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
 * Who makes which delivery now. Operational state and no read model: it is in no event, and a rebuild does not touch
 * it. `sending` is false once the request has ended and only its record is on the way. A lane is a row to lock: who
 * holds an endpoint's lane is alone in counting its leases and adding to them.
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
${leaseFunction}`

/** Creates what is missing; safe to run from several processes at once. */
export function createLeaseTables(tx: Tx): Promise<void> {
  return ensureTables(tx, { name: 'webhook-leases', table: 'tidegate.webhook_leases', ddl })
}
