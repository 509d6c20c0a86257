import type { RetentionCutoffs } from '../../infra/event-store/projection.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { deliveryTypes } from '../../infra/wire/webhooks/events.ts'
import { pruneDeliveries } from './apply-deliveries.ts'

const chunkSize = 1000

/**
 * Deletes events of organizations that keep them for less than 30 days, with their deliveries and attempts. Returns
 * true if there may be more. Events of types from later releases are kept for 30 days, because the index is by type.
 */
export async function pruneWebhooks(tx: Tx, ended: RetentionCutoffs[]): Promise<boolean> {
  const cutoffs = ended.flatMap(({ organization_id, webhooks_before: before }) =>
    before === null ? [] : [{ organization_id, before }],
  )
  const { rows } = await tx.query<{ event_id: string }>({
    name: 'prune-ended-webhook-events',
    text: `with due as materialized (
        select old.event_id from unnest($1::text[], $2::bigint[]) as ended (organization_id, before)
          cross join (values ('live'), ('test')) as env (environment) cross join unnest($3::text[]) as of (type)
          cross join lateral (
            select e.event_id from webhook_events e
            where e.organization_id = ended.organization_id and e.environment = env.environment
              and e.type = of.type and e.created_at < ended.before
            order by e.created_at limit ${chunkSize} for update skip locked
          ) old limit ${chunkSize}
      )
      delete from webhook_events e using due where e.event_id = due.event_id returning e.event_id`,
    values: [
      cutoffs.map(({ organization_id }) => organization_id),
      cutoffs.map(({ before }) => before),
      [...deliveryTypes],
    ],
  })
  await pruneDeliveries(tx, rows)
  return rows.length === chunkSize
}
