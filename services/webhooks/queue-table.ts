import { databaseNow, leaseColumns } from '../../infra/postgres/lease.ts'
import { ddlOf, type Migrations } from '../../infra/postgres/migrations.ts'
import { lockKey, type Tx } from '../../infra/postgres/pool.ts'
import { column, nullable, primaryKey, table } from '../../infra/postgres/table.ts'

/** Held by who takes from the queue, or repairs it; never beyond one transaction. */
export const queueLock = lockKey('tidegate:webhook-queue')

export async function lockQueue(tx: Tx): Promise<void> {
  await tx.query('select pg_advisory_xact_lock($1)', [queueLock])
}

/**
 * Deliveries to come and in flight. It is operational state and no read model, and what is lost of it is put right by
 * the read model.
 */
export const queue = table(
  'tidegate.webhook_queue',
  {
    delivery_id: primaryKey(column.id()),
    endpoint_id: column.id(),
    organization_id: column.id(),
    due_at: column.bigint(),
    attempts: column.integer(),
    traceparent: nullable(column.text()),
    /** Those that are taken have an owner. */
    owner: nullable(leaseColumns.owner),
    expires_at: nullable(leaseColumns.expires_at),
  },
  {
    storage: 'fillfactor = 70',
    indexes: [
      '(due_at) where owner is null',
      '(endpoint_id, due_at) where owner is null',
      '(endpoint_id) where owner is not null',
    ],
  },
)

// One at a time takes. A statement of a volatile function has a snapshot of its own. So the one that counts sees what
// was taken before, and the count of an endpoint is exact. A row is taken only while the read model agrees: it shows
// the delivery as pending, after as many attempts.
const takeFunction = `
create function tidegate.take_webhooks(
  lock_key bigint, new_owner text, lease_ms integer, endpoint_ids text[], quotas integer[], max_taken integer,
  max_per_endpoint integer, due_by bigint, out deliveries json
) language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(lock_key);
  with picked as (
    select due.*, row_number() over (partition by endpoint.id order by due.due_at) as turn
    from unnest(endpoint_ids, quotas) as endpoint(id, quota)
    cross join lateral (
      select q.delivery_id, q.due_at, q.endpoint_id, q.organization_id, q.traceparent, d.event_id, d.attempts, d.attempts_in_round
      from tidegate.webhook_queue q join read.webhook_deliveries d using (delivery_id)
      where q.endpoint_id = endpoint.id and q.owner is null and q.due_at <= due_by
        and d.status = 'pending' and d.attempts = q.attempts
      order by q.due_at
      limit greatest(0, least(endpoint.quota, max_per_endpoint - (
        select count(*) from tidegate.webhook_queue t where t.endpoint_id = endpoint.id and t.owner is not null)))
      for update of q skip locked
    ) due
    order by turn, due.due_at limit max_taken
  ), taken as (
    update tidegate.webhook_queue q
    set owner = new_owner, expires_at = ${databaseNow} + lease_ms
    from picked where q.delivery_id = picked.delivery_id and q.owner is null returning q.delivery_id
  )
  select json_agg(json_build_object(
    'id', delivery_id, 'eventId', event_id, 'endpointId', endpoint_id, 'organizationId', organization_id,
    'attempts', attempts, 'attemptsInRound', attempts_in_round, 'dueAt', due_at,
    'traceparent', traceparent) order by turn, due_at)
  into deliveries from picked join taken using (delivery_id);
end $$;`

export const queueMigrations: Migrations = {
  name: 'webhook-queue',
  create: ddlOf(queue) + takeFunction,
}
