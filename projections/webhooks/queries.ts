import type { Db } from '../../infra/postgres/pool.ts'
import {
  type DeliveryType,
  deliveryTypes,
  type SubscribableType,
} from '../../infra/wire/webhooks/events.ts'
import type { Environment } from '../../schemas/events.ts'
import { listDeliveries } from './list-deliveries.ts'
import {
  type DeliveryRow,
  deliveryFields,
  deliveryStatuses,
  type EndpointRow,
  endpointRow,
  type StoredEndpoint,
  type WebhookEventRow,
  webhookEndpoints,
  webhookEvents,
} from './tables.ts'

export interface WebhookScope {
  organizationId: string
  environment: Environment
}

export async function findEndpoint(
  db: Db,
  { endpointId, ...scope }: WebhookScope & { endpointId: string },
): Promise<EndpointRow | undefined> {
  const endpoint = (await findEndpoints(db, [endpointId])).get(endpointId)
  return endpoint && isIn(scope, endpoint) ? endpoint : undefined
}

const isIn = (
  { organizationId, environment }: WebhookScope,
  row: { organization_id: string; environment: Environment },
): boolean => row.organization_id === organizationId && row.environment === environment

export async function findEndpoints(
  db: Db,
  endpointIds: string[],
): Promise<Map<string, EndpointRow>> {
  const { rows } = await db.query<StoredEndpoint>({
    name: 'find-webhook-endpoints',
    text: `select ${webhookEndpoints.select('e')} from read.webhook_endpoints e where e.endpoint_id = any($1)`,
    values: [endpointIds],
  })
  return new Map(rows.map((record) => [record.id, endpointRow(record)]))
}

/** Exceeds the number of endpoints that can be active, so a list has every active one. */
export const maxListedEndpoints = 200

/** Returns endpoints, newest first. `hasMore` is true if disabled ones were left out. */
export async function listEndpoints(
  db: Db,
  { organizationId, environment }: WebhookScope,
): Promise<{ rows: EndpointRow[]; hasMore: boolean }> {
  const { rows } = await db.query<StoredEndpoint>(
    `select ${webhookEndpoints.select('e')} from read.webhook_endpoints e
     where e.organization_id = $1 and e.environment = $2
     order by (e.status = 'active') desc, e.created_at desc, e.endpoint_id desc
     limit ${maxListedEndpoints + 1}`,
    [organizationId, environment],
  )
  const endpoints = rows.slice(0, maxListedEndpoints).map(endpointRow)
  return { rows: endpoints.sort(newestFirst), hasMore: rows.length > maxListedEndpoints }
}

function newestFirst(a: EndpointRow, b: EndpointRow): number {
  return b.created_at - a.created_at || (a.id < b.id ? 1 : -1)
}

export async function countActiveEndpoints(db: Db, organizationId: string): Promise<number> {
  const { rows } = await db.query<{ active: number }>(
    `select count(*)::int as active from read.webhook_endpoints
     where organization_id = $1 and status = 'active'`,
    [organizationId],
  )
  return rows[0]?.active ?? 0
}

export type Subscriber = Pick<
  EndpointRow,
  'id' | 'organization_id' | 'environment' | 'event_types' | 'filter' | 'created_at'
>

/** Returns the active subscribed endpoints by `${organizationId} ${environment} ${type}`, oldest first. */
export async function findSubscribedEndpoints(
  db: Db,
  subscriptions: (WebhookScope & { type: SubscribableType })[],
): Promise<Map<string, Subscriber[]>> {
  const { rows } = await db.query<Subscriber>({
    name: 'subscribed-webhook-endpoints',
    text: `select ${webhookEndpoints.select('e', 'id', 'organization_id', 'environment', 'event_types', 'filter', 'created_at')}
      from read.webhook_endpoints e where e.organization_id = any($1) and e.status = 'active'
      order by e.created_at, e.endpoint_id`,
    values: [[...new Set(subscriptions.map(({ organizationId }) => organizationId))]],
  })
  const subscribers = new Map<string, Subscriber[]>()
  for (const { organizationId, environment, type } of subscriptions)
    subscribers.set(`${organizationId} ${environment} ${type}`, [])
  for (const row of rows) {
    for (const type of row.event_types)
      subscribers.get(`${row.organization_id} ${row.environment} ${type}`)?.push(row)
  }
  return subscribers
}

const eventFields = webhookEvents.selectWithout('e', 'log_partition', 'traceparent')

/** Returns the ids that belong to a raised event. */
export async function findRaisedEventIds(db: Db, ids: string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ event_id: string }>({
    name: 'raised-webhook-events',
    text: `select event_id from read.webhook_events where event_id = any($1)`,
    values: [ids],
  })
  return new Set(rows.map((row) => row.event_id))
}

export interface WebhookEventQuery extends WebhookScope {
  /** Earliest creation time, in epoch milliseconds. */
  since: number
  limit: number
  type?: DeliveryType | undefined
  endpointId?: string | undefined
}

/** Returns events, newest first. */
export async function listEvents(
  db: Db,
  { endpointId, ...query }: WebhookEventQuery,
): Promise<WebhookEventRow[]> {
  if (endpointId !== undefined) {
    const deliveries = await listDeliveries(db, { ...query, endpoint_id: endpointId })
    const ids = deliveries.map(({ event_id }) => event_id)
    const events = await findEvents(db, ids)
    return ids.flatMap((id) => events.get(id) ?? [])
  }
  const { organizationId, environment, since, limit, type } = query
  const { rows } = await db.query<WebhookEventRow>(
    // An index finds the newest events of each type in order, and only these are sorted.
    `select e.* from unnest($5::text[]) as of_type(type) cross join lateral (
       select ${eventFields} from read.webhook_events e
       where e.organization_id = $1 and e.environment = $2 and e.type = of_type.type and e.created_at >= $3
       order by e.created_at desc, e.event_id desc limit $4
     ) e order by e.created_at desc, e.id desc limit $4`,
    [organizationId, environment, since, limit, type ? [type] : deliveryTypes],
  )
  return rows
}

/** Returns undefined if the scope has no such event created at or after `since` (epoch milliseconds). */
export async function findEvent(
  db: Db,
  { eventId, since, ...scope }: WebhookScope & { eventId: string; since: number },
): Promise<WebhookEventRow | undefined> {
  const event = (await findEvents(db, [eventId])).get(eventId)
  return event && isIn(scope, event) && event.created_at >= since ? event : undefined
}

export async function findEvents(db: Db, ids: string[]): Promise<Map<string, WebhookEventRow>> {
  const { rows } = await db.query<WebhookEventRow>({
    name: 'find-webhook-events',
    text: `select ${eventFields} from read.webhook_events e where e.event_id = any($1)`,
    values: [ids],
  })
  return new Map(rows.map((row) => [row.id, row]))
}

export async function findDeliveriesByEvent(db: Db, eventIds: string[]): Promise<DeliveryRow[]> {
  const { rows } = await db.query<DeliveryRow>(
    `select ${deliveryFields} from read.webhook_deliveries d where d.event_id = any($1)
     order by d.created_at, d.delivery_id`,
    [eventIds],
  )
  return rows
}

export async function findDelivery(db: Db, deliveryId: string): Promise<DeliveryRow | undefined> {
  const { rows } = await db.query<DeliveryRow>({
    name: 'find-webhook-delivery',
    text: `select ${deliveryFields} from read.webhook_deliveries d where d.delivery_id = $1`,
    values: [deliveryId],
  })
  return rows[0]
}

/** Times are epoch milliseconds. */
export interface FailureStreak {
  /** Time after the last success, or when the endpoint was created, enabled or moved since. */
  start: number
  /** The first failed attempts since then, at most three. An erasure can delete some. */
  failures: number[]
}

export async function findFailureStreak(db: Db, endpointId: string): Promise<FailureStreak> {
  const { rows } = await db.query<FailureStreak>({
    name: 'webhook-endpoint-failure-streak',
    text: `select start::float8, array(select attempted_at::float8 from read.webhook_attempts
        where endpoint_id = $1 and not succeeded and attempted_at >= start order by attempted_at limit 3) as failures
      from (select greatest(target_since, (select max(attempted_at) + 1 from read.webhook_attempts
        where endpoint_id = $1 and succeeded)) as start from read.webhook_endpoints where endpoint_id = $1) streak`,
    values: [endpointId],
  })
  return rows[0] ?? { start: 0, failures: [] }
}

export interface DeliveryStats {
  endpointId: string
  /** Deliveries with at least one attempt. */
  attempted: number
  succeeded: number
  /** Deliveries that were not attempted yet, or are retried. */
  pending: number
  /** Unsuccessful ones of the newest `recentDeliveries` attempted deliveries. */
  recentFailures: number
  /** Milliseconds from an event to its delivery; null if none succeeded. */
  latencyP50: number | null
  latencyP95: number | null
  /** Latest delivery whose attempts failed so far. Times are epoch milliseconds. */
  lastFailure: {
    at: number
    event_id: string
    response_status: number | null
    error: string | null
  } | null
}

export const recentDeliveries = 20
/** Bounds the deliveries that are read per endpoint and event type. */
export const maxStatDeliveries = 1000

/** Summarizes each endpoint's deliveries created at or after `since` (epoch milliseconds), by endpoint id. */
export async function readDeliveryStats(
  db: Db,
  endpointIds: string[],
  since: number,
): Promise<Map<string, DeliveryStats>> {
  const { rows } = await db.query<DeliveryStats>({
    name: 'webhook-delivery-stats',
    text: `select endpoint.id as "endpointId", stats.*
      from unnest($1::text[]) as endpoint(id) cross join lateral (
        select count(*) filter (where attempts > 0)::int as attempted,
          count(*) filter (where status = 'succeeded')::int as succeeded,
          count(*) filter (where status = 'pending')::int as pending,
          count(*) filter (where has_failed and recency <= ${recentDeliveries})::int as "recentFailures",
          percentile_cont(0.5) within group (order by latency) as "latencyP50",
          percentile_cont(0.95) within group (order by latency) as "latencyP95",
          (array_agg(json_build_object('at', updated_at, 'event_id', event_id,
            'response_status', response_status, 'error', error) order by updated_at desc)
            filter (where has_failed))[1] as "lastFailure"
        from (
          select d.*, d.attempts > 0 and d.status in ('pending', 'failed') as has_failed,
            case when d.status = 'succeeded' and d.attempts = d.attempts_in_round
              then d.updated_at - d.created_at end as latency,
            row_number() over (order by d.attempts = 0, d.updated_at desc) as recency
          from unnest($3::text[]) as of_type(type) cross join lateral (
            select d.* from unnest($4::text[]) as of_status(status) cross join lateral (
              select * from read.webhook_deliveries
              where endpoint_id = endpoint.id and event_type = of_type.type
                and status = of_status.status and created_at >= $2
              order by created_at desc, event_id desc limit ${maxStatDeliveries}
            ) d
            order by created_at desc, event_id desc limit ${maxStatDeliveries}
          ) d
        ) d
      ) stats`,
    values: [endpointIds, since, deliveryTypes, deliveryStatuses],
  })
  return new Map(rows.map((row) => [row.endpointId, row]))
}

// Counting stops here, because counting millions of rows would take too long.
const maxCounted = 100_000

/** Times are epoch milliseconds. */
export interface QueueStats {
  /** null if no delivery is due. */
  oldestDueAt: number | null
  due: number
  failed: number
}

/** Counts due and failed deliveries, up to 100,000 each, at `now` (epoch milliseconds). */
export async function readQueueStats(db: Db, now: number): Promise<QueueStats> {
  const { rows } = await db.query<QueueStats>(
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
