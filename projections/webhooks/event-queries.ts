import type { Db } from '../../infra/postgres/pool.ts'
import { type DeliveryType, deliveryTypes } from '../../infra/wire/webhooks/events.ts'
import type { WebhookScope } from './endpoint-queries.ts'
import { eventFields } from './event-records.ts'
import type { WebhookEventRow } from './rows.ts'

/** Those of the event ids that have been raised and are kept. */
export async function raisedEventIds(db: Db, ids: string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ event_id: string }>({
    name: 'raised-webhook-events',
    text: `select event_id from read.webhook_events where event_id = any($1)`,
    values: [ids],
  })
  return new Set(rows.map((row) => row.event_id))
}

export interface ListEvents extends WebhookScope {
  /** Epoch milliseconds; events created before it are left out. */
  since: number
  /** Rows at most. */
  limit: number
  type?: DeliveryType | undefined
  /** Only events that went to this endpoint. */
  endpointId?: string | undefined
}

/** Events, newest first, ties by id. */
export async function listEvents(db: Db, options: ListEvents): Promise<WebhookEventRow[]> {
  const { organizationId, environment, since, limit, type, endpointId } = options
  const values: unknown[] = [organizationId, environment, since, limit, type ? [type] : deliveryTypes]
  if (endpointId !== undefined) values.push(endpointId)
  const { rows } = await db.query<WebhookEventRow>(
    // The newest of each type are the next entries of an index; of those, few have to be sorted.
    `select e.* from unnest($5::text[]) as wanted(type) cross join lateral (
       ${endpointId === undefined ? newestOfType : newestOfEndpoint}
     ) e order by e.created_at desc, e.id desc limit $4`,
    values,
  )
  return rows
}

const newestOfType = `select ${eventFields('e')} from read.webhook_events e
  where e.organization_id = $1 and e.environment = $2 and e.type = wanted.type and e.created_at >= $3
  order by e.created_at desc, e.event_id desc limit $4`

const newestOfEndpoint = `select ${eventFields('e')}
  from read.webhook_deliveries d join read.webhook_events e using (event_id)
  where d.endpoint_id = $6 and d.event_type = wanted.type and d.created_at >= $3
    and e.organization_id = $1 and e.environment = $2
  order by d.created_at desc, d.event_id desc limit $4`

/** The event; undefined when the scope has none of that id, or an older one than `since` (epoch milliseconds). */
export async function findEvent(
  db: Db,
  { organizationId, environment, eventId, since }: WebhookScope & { eventId: string; since: number },
): Promise<WebhookEventRow | undefined> {
  const { rows } = await db.query<WebhookEventRow>(
    `select ${eventFields('e')} from read.webhook_events e
     where e.event_id = $1 and e.organization_id = $2 and e.environment = $3 and e.created_at >= $4`,
    [eventId, organizationId, environment, since],
  )
  return rows[0]
}

/** The events that exist among the ids, of any organization. */
export async function findEvents(db: Db, ids: string[]): Promise<Map<string, WebhookEventRow>> {
  const { rows } = await db.query<WebhookEventRow>({
    name: 'find-webhook-events',
    text: `select ${eventFields('e')} from read.webhook_events e where e.event_id = any($1)`,
    values: [ids],
  })
  return new Map(rows.map((row) => [row.id, row]))
}
