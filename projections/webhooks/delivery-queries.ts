import type { Db } from '../../infra/postgres/pool.ts'
import { deliveryFields } from './delivery-records.ts'
import type { DeliveryRow } from './rows.ts'

/** All deliveries of the events, by creation, ties by id. */
export async function deliveriesOf(db: Db, eventIds: string[]): Promise<DeliveryRow[]> {
  const { rows } = await db.query<DeliveryRow>(
    `select ${deliveryFields('d')} from read.webhook_deliveries d where d.event_id = any($1)
     order by d.created_at, d.delivery_id`,
    [eventIds],
  )
  return rows
}

/** The delivery, of any organization. */
export async function findDelivery(db: Db, deliveryId: string): Promise<DeliveryRow | undefined> {
  const { rows } = await db.query<DeliveryRow>({
    name: 'find-webhook-delivery',
    text: `select ${deliveryFields('d')} from read.webhook_deliveries d where d.delivery_id = $1`,
    values: [deliveryId],
  })
  return rows[0]
}

export interface ListUndelivered {
  /** Given up after the last attempt; or not attempted when due, as endpoint or organization was not active. */
  status: 'failed' | 'skipped'
  organizationId?: string | undefined
  endpointId?: string | undefined
  /** Epoch milliseconds; deliveries that ended before it are left out. */
  since: number
  /** Rows at most. */
  limit: number
}

/** Deliveries that ended without success, the latest to end first, ties by id. */
export async function listUndelivered(db: Db, options: ListUndelivered): Promise<DeliveryRow[]> {
  const { status, organizationId, endpointId, since, limit } = options
  const values: unknown[] = [since, limit, status]
  const where = ['d.status = $3', 'd.updated_at >= $1']
  if (organizationId !== undefined) where.push(`d.organization_id = $${values.push(organizationId)}`)
  if (endpointId !== undefined) where.push(`d.endpoint_id = $${values.push(endpointId)}`)
  const { rows } = await db.query<DeliveryRow>(
    `select ${deliveryFields('d')} from read.webhook_deliveries d where ${where.join(' and ')}
     order by d.updated_at desc, d.delivery_id desc limit $2`,
    values,
  )
  return rows
}

/**
 * When the endpoint's failures began (epoch milliseconds): its first failed attempt after its last success and since
 * it was last enabled or moved; undefined while it has none.
 */
export async function failingSince(db: Db, endpointId: string): Promise<number | undefined> {
  const { rows } = await db.query<{ since: number | null }>({
    name: 'webhook-endpoint-failing-since',
    text: `select min(a.attempted_at)::float8 as since from read.webhook_attempts a
      where a.endpoint_id = $1 and not a.succeeded
        and a.attempted_at >= (select target_since from read.webhook_endpoints where endpoint_id = $1)
        and a.attempted_at > coalesce(
          (select max(attempted_at) from read.webhook_attempts where endpoint_id = $1 and succeeded), 0)`,
    values: [endpointId],
  })
  return rows[0]?.since ?? undefined
}

/** Readings count no further: a count of millions would take as long as what it measures. */
export const maxCounted = 100_000

export interface QueueReadings {
  /** Since when the delivery due longest has been waiting (epoch milliseconds); null when none is due. */
  oldestDueAt: number | null
  /** Deliveries due at `now`, at most `maxCounted`. */
  due: number
  /** Deliveries given up after their last attempt, at most `maxCounted`. */
  failed: number
}

/** What the queue of deliveries looks like at `now` (epoch milliseconds); reads no delivery that succeeded. */
export async function queueReadings(db: Db, now: number): Promise<QueueReadings> {
  const { rows } = await db.query<QueueReadings>(
    `select
       (select min(next_attempt_at)::float8 from read.webhook_deliveries where next_attempt_at <= $1)
         as "oldestDueAt",
       (select count(*)::int from (select from read.webhook_deliveries
         where next_attempt_at <= $1 limit ${maxCounted}) d) as due,
       (select count(*)::int from (select from read.webhook_deliveries
         where status = 'failed' limit ${maxCounted}) d) as failed`,
    [now],
  )
  return rows[0] ?? { oldestDueAt: null, due: 0, failed: 0 }
}
