import { ensureTables } from '../../../infra/postgres/ensure-tables.ts'
import { lockKey, type Tx } from '../../../infra/postgres/pool.ts'

/** Held by who takes from the queue, or puts right what is in it; never beyond one transaction. */
export const queueLock = lockKey('tidegate:webhook-queue')

export async function lockQueue(tx: Tx): Promise<void> {
  await tx.query('select pg_advisory_xact_lock($1)', [queueLock])
}

// Deliveries to come and in flight: `owner` has those that are taken, until `leased_until`. It is operational state and
// no read model, and what is lost of it is put right by the read model. One at a time takes. A statement of a volatile
// function has a snapshot of its own. So the one that counts sees what was taken before, and the count of an endpoint
// is exact. A row is taken only while the read model agrees: it shows the delivery as pending, after as many attempts.
const ddl = `
create table if not exists tidegate.webhook_queue (
  delivery_id text collate "C" primary key,
  endpoint_id text collate "C" not null,
  organization_id text collate "C" not null,
  due_at bigint not null,
  attempts integer not null,
  owner text,
  leased_until timestamptz
) with (fillfactor = 70);
alter table tidegate.webhook_queue add column if not exists traceparent text;
create index if not exists webhook_queue_due on tidegate.webhook_queue (due_at) where owner is null;
create index if not exists webhook_queue_endpoint on tidegate.webhook_queue (endpoint_id, due_at) where owner is null;
create index if not exists webhook_queue_taken on tidegate.webhook_queue (endpoint_id) where owner is not null;
create or replace function tidegate.take_webhooks(
  lock_key bigint, taker text, lease_ms integer, endpoint_ids text[], rooms integer[], free integer,
  max_per_endpoint integer, due_by bigint, out deliveries json
) language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(lock_key);
  with picked as (
    select due.*, row_number() over (partition by endpoint.id order by due.due_at) as turn
    from unnest(endpoint_ids, rooms) as endpoint(id, room)
    cross join lateral (
      select q.delivery_id, q.due_at, q.endpoint_id, q.organization_id, q.traceparent, d.event_id, d.attempts, d.attempts_in_round
      from tidegate.webhook_queue q join read.webhook_deliveries d using (delivery_id)
      where q.endpoint_id = endpoint.id and q.owner is null and q.due_at <= due_by
        and d.status = 'pending' and d.attempts = q.attempts
      order by q.due_at
      limit greatest(0, least(endpoint.room, max_per_endpoint - (
        select count(*) from tidegate.webhook_queue t where t.endpoint_id = endpoint.id and t.owner is not null)))
    ) due
    order by turn, due.due_at limit free
  ), taken as (
    update tidegate.webhook_queue q
    set owner = taker, leased_until = clock_timestamp() + lease_ms * interval '1 millisecond'
    from picked where q.delivery_id = picked.delivery_id and q.owner is null returning q.delivery_id
  )
  select json_agg(json_build_object(
    'id', delivery_id, 'eventId', event_id, 'endpointId', endpoint_id, 'organizationId', organization_id,
    'attempts', attempts, 'attemptsInRound', attempts_in_round, 'dueAt', due_at,
    'traceparent', traceparent) order by turn, due_at)
  into deliveries from picked join taken using (delivery_id);
end $$;
drop function if exists tidegate.lease_webhooks;`

export function createQueueTables(tx: Tx): Promise<void> {
  return ensureTables(tx, { name: 'webhook-queue', table: 'tidegate.webhook_queue', ddl })
}
