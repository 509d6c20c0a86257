import type { Db } from '../../infra/postgres/pool.ts'
import type { WebhookScope } from './queries.ts'
import { type WebhookEventRow, webhookEvents } from './tables.ts'

/** Returns the webhook events of the last 30 days about the sessions, with the number of their deliveries. */
export async function findEventsAboutSessions(
  db: Db,
  { organizationId, environment, sessionIds }: WebhookScope & { sessionIds: string[] },
): Promise<(WebhookEventRow & { deliveries: number })[]> {
  const { rows } = await db.query<WebhookEventRow & { deliveries: number }>(
    `select ${webhookEvents.selectWithout('e', 'log_partition', 'traceparent')},
      (select count(*) from read.webhook_deliveries d where d.event_id = e.event_id)::float8 as deliveries
     from read.webhook_events e where organization_id = $1 and environment = $2 and subject_type in ('session', 'gate_session')
       and subject_id = any($3) order by e.created_at, e.event_id`,
    [organizationId, environment, sessionIds],
  )
  return rows
}
