import type { PagePosition } from '../../infra/http/pagination.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { directEventType } from '../../infra/wire/webhooks/direct-call.ts'
import { type DeliveryType, deliveryTypes } from '../../infra/wire/webhooks/events.ts'
import type { Environment } from '../../schemas/events.ts'
import {
  type AttemptRow,
  type DeliveryRow,
  deliveryFields,
  deliveryStatuses,
  webhookAttempts,
} from './tables.ts'

export interface DeliveryQuery {
  organizationId?: string | undefined
  environment?: Environment | undefined
  endpoint_id?: string | undefined
  type?: DeliveryType | undefined
  status?: readonly DeliveryRow['status'][] | undefined
  eventIds?: readonly string[] | undefined
  /** Earliest time of the event, in epoch milliseconds. */
  since: number
  /** Exclusive. */
  until?: number | undefined
  after?: PagePosition | undefined
  limit: number
}

/** Returns deliveries, newest event first; without an organization, those of all. */
export function listDeliveries(db: Db, query: DeliveryQuery): Promise<DeliveryRow[]> {
  const newestFirst = 'd.created_at desc, d.event_id desc, d.endpoint_id desc'
  return findByEndpoint(db, query, `order by ${newestFirst} limit $1`)
}

/** Position of a delivery in the list. An event has several deliveries of the same time. */
export const deliveryPosition = ({ created_at, event_id, endpoint_id }: DeliveryRow) => ({
  value: created_at,
  id: `${event_id} ${endpoint_id}`,
})

/**
 * Returns deliveries of an endpoint that can be resent, oldest event first. Returns more than `limit` if the last ones
 * are of the same time.
 */
export async function listResendable(
  db: Db,
  query: DeliveryQuery & { endpoint_id: string },
): Promise<DeliveryRow[]> {
  const types = deliveryTypes.filter((type) => type !== directEventType)
  return findByEndpoint(db, query, 'order by d.created_at fetch first $1 rows with ties', types)
}

// An index has the deliveries of each endpoint, type and status in order, so only the first ones of each are read.
async function findByEndpoint(
  db: Db,
  query: DeliveryQuery,
  order: string,
  types: readonly DeliveryType[] = deliveryTypes,
): Promise<DeliveryRow[]> {
  const { type, status = deliveryStatuses, after, until = Number.MAX_SAFE_INTEGER } = query
  const [afterEvent, afterEndpoint] = after?.id.split(' ') ?? []
  const { rows } = await db.query<DeliveryRow>(
    `select d.* from read.webhook_endpoints e
       cross join unnest($2::text[]) as of_type(type) cross join unnest($3::text[]) as of_status(status)
       cross join lateral (
         select ${deliveryFields} from read.webhook_deliveries d
         where d.endpoint_id = e.endpoint_id and d.event_type = of_type.type and d.status = of_status.status
           and d.created_at >= $4 and d.created_at < $5 and ($6::text[] is null or d.event_id = any($6))
           and ($7::bigint is null or (d.created_at, d.event_id, d.endpoint_id) < ($7, $8, $9))
         ${order}
       ) d
     where ($10::text is null or e.organization_id = $10) and ($11::text is null or e.environment = $11)
       and ($12::text is null or e.endpoint_id = $12) ${order}`,
    [
      query.limit,
      types.filter((name) => name === (type ?? name)),
      [...new Set(status)],
      query.since,
      until,
      query.eventIds,
      after?.value,
      afterEvent,
      afterEndpoint,
      query.organizationId,
      query.environment,
      query.endpoint_id,
    ],
  )
  return rows
}

/** Bounds the attempts that are shown of a delivery, which can be retried any number of times. */
export const maxListedAttempts = 200

/** Returns the newest attempts of a delivery, oldest first; one more than the maximum if there are more. */
export async function listAttempts(db: Db, deliveryId: string): Promise<AttemptRow[]> {
  const { rows } = await db.query<AttemptRow>(
    `select ${webhookAttempts.selectWithout('a', 'delivery_id', 'endpoint_id')} from read.webhook_attempts a where a.delivery_id = $1
     order by a.attempt desc limit ${maxListedAttempts + 1}`,
    [deliveryId],
  )
  return rows.toReversed()
}
