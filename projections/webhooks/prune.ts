import type { EndedData } from '../../infra/event-store/projection.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { deliveryTypes } from '../../infra/wire/webhooks/events.ts'
import { pruneDeliveries } from './apply-deliveries.ts'

const chunk = 1000

/**
 * Events of organizations that keep them for less than a month, with their deliveries and attempts. Their index is by
 * type; an event of a type that only a later version knows stays for the month.
 */
export async function pruneWebhooks(tx: Tx, ended: EndedData[]): Promise<boolean> {
  const some = ended.flatMap(({ organization_id, webhooks_before: before }) =>
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
            order by e.created_at limit ${chunk} for update skip locked
          ) old limit ${chunk}
      )
      delete from webhook_events e using due where e.event_id = due.event_id returning e.event_id`,
    values: [
      some.map(({ organization_id }) => organization_id),
      some.map(({ before }) => before),
      [...deliveryTypes],
    ],
  })
  await pruneDeliveries(tx, rows)
  return rows.length === chunk
}
