import { derivedHexId } from '../../infra/ids.ts'
import { databaseNow } from '../../infra/postgres/lease.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { insertInto } from '../../infra/postgres/table.ts'
import type { WebhookEventRaised } from '../../schemas/events.ts'
import { queue, queueLock } from './queue-table.ts'

/** Requests in flight to one endpoint, over all processes. */
export const maxPerEndpoint = 10

export interface DueEndpoint {
  endpointId: string
  organizationId: string
  /** Deliveries that are due and not in flight; where there are many, counted up to 10. */
  due: number
}

/** How many deliveries may be taken for an endpoint. */
export interface Quota {
  endpointId: string
  max: number
}

const columns = queue.columnsWithout('owner', 'expires_at')

/**
 * Queues the deliveries of events, before they are on the log. Nothing is sent before the read model has it.
 * `traces`: the `traceparent` of events, by id.
 */
export async function enqueue(
  db: Db,
  events: readonly WebhookEventRaised[],
  traces?: ReadonlyMap<string, string | undefined>,
): Promise<void> {
  const rows = events.flatMap(
    ({ route, event_id, endpoint_ids, organization_id, created_at: due_at }) =>
      route === 'queued'
        ? endpoint_ids.map((endpoint_id) => ({
            delivery_id: derivedHexId('wdlv', event_id, endpoint_id),
            endpoint_id,
            organization_id,
            due_at,
            attempts: 0,
            traceparent: traces?.get(event_id) ?? null,
          }))
        : [],
  )
  if (rows.length === 0) return
  await db.query({
    name: 'webhook-enqueue',
    ...insertInto(queue, { columns, rows, conflict: 'on conflict do nothing' }),
  })
}

/** Queues those of the deliveries that are pending in the read model. */
export async function enqueuePending(db: Db, deliveryIds: readonly string[]): Promise<void> {
  await db.query({
    name: 'webhook-enqueue-pending',
    text: `insert into tidegate.webhook_queue (delivery_id, endpoint_id, organization_id, due_at, attempts)
           select delivery_id, endpoint_id, organization_id, next_attempt_at, attempts from read.webhook_deliveries
           where delivery_id = any($1) and next_attempt_at is not null on conflict do nothing`,
    values: [deliveryIds],
  })
}

export async function inFlightDeliveries(
  db: Db,
  deliveryIds: readonly string[],
): Promise<Set<string>> {
  if (deliveryIds.length === 0) return new Set()
  const { rows } = await db.query<{ delivery_id: string }>({
    name: 'webhook-in-flight',
    text: 'select delivery_id from tidegate.webhook_queue where delivery_id = any($1) and owner is not null',
    values: [deliveryIds],
  })
  return new Set(rows.map((row) => row.delivery_id))
}

/**
 * The endpoints that have something due. The first 1,000 due deliveries are usually all there are. Where more are due,
 * the index is read once for each endpoint, so a queue of a million for a dead endpoint costs the others nothing.
 */
export async function dueEndpoints(
  db: Db,
  { now, firstRows = 1000 }: { now: number; firstRows?: number },
): Promise<DueEndpoint[]> {
  const { rows } = await db.query<DueEndpoint>({
    name: 'webhook-due',
    text: `
      select endpoint_id as "endpointId", organization_id as "organizationId", count(*)::int as due from (
        select endpoint_id, organization_id from tidegate.webhook_queue
        where owner is null and due_at <= $1 order by due_at limit $2) first
      group by 1, 2 order by 1`,
    values: [now, firstRows],
  })
  const found = rows.reduce((sum, { due }) => sum + due, 0)
  return found < firstRows ? rows : await eachDueEndpoint(db, now)
}

async function eachDueEndpoint(db: Db, now: number): Promise<DueEndpoint[]> {
  const next = `select endpoint_id, organization_id from tidegate.webhook_queue
    where owner is null and due_at <= $1`
  const { rows } = await db.query<DueEndpoint>({
    name: 'webhook-due-endpoints',
    text: `
      with recursive found as (
        (${next} order by endpoint_id, due_at limit 1)
        union all
        select next.* from found, lateral (
          ${next} and endpoint_id > found.endpoint_id order by endpoint_id, due_at limit 1) next)
      select endpoint_id as "endpointId", organization_id as "organizationId", (
        select count(*)::int from (
          select from tidegate.webhook_queue q where q.owner is null and q.endpoint_id = found.endpoint_id
          and q.due_at <= $1 limit ${maxPerEndpoint}) counted) as due
      from found order by endpoint_id`,
    values: [now],
  })
  return rows
}

export interface TakenDelivery {
  id: string
  eventId: string
  endpointId: string
  organizationId: string
  attempts: number
  attemptsInRound: number
  dueAt: number
  /** As a `traceparent`; null for a row that was made anew, or that nobody traces. */
  traceparent?: string | null
}

/** Takes due deliveries, one of each endpoint before a second of any, with a lease. */
export async function take(
  db: Db,
  {
    owner,
    leaseMs,
    quotas,
    free,
    now,
  }: Owner & { leaseMs: number; quotas: readonly Quota[]; free: number; now: number },
): Promise<TakenDelivery[]> {
  const { rows } = await db.query<{ taken: TakenDelivery[] | null }>({
    name: 'webhook-take',
    text: 'select tidegate.take_webhooks($1, $2, $3, $4, $5, $6, $7, $8) as taken',
    values: [
      queueLock,
      owner,
      leaseMs,
      quotas.map(({ endpointId }) => endpointId),
      quotas.map(({ max }) => max),
      free,
      maxPerEndpoint,
      now,
    ],
  })
  return rows[0]?.taken ?? []
}

// The owner's rows among $2, locked in one order: two statements that lock many would wait for each other.
const ownRows = `
  select delivery_id from tidegate.webhook_queue where owner = $1 and delivery_id = any($2)
  order by delivery_id for update`

interface Owner {
  owner: string
}

type OwnDeliveries = Owner & { deliveryIds: readonly string[] }

/** Renews leases, expired ones too; returns the deliveries that are still the owner's. */
export async function renew(
  db: Db,
  { owner, deliveryIds, leaseMs }: OwnDeliveries & { leaseMs: number },
): Promise<Set<string>> {
  const { rows } = await db.query<{ delivery_id: string }>({
    name: 'webhook-renew',
    text: `update tidegate.webhook_queue set expires_at = ${databaseNow} + $3
           where delivery_id in (${ownRows}) returning delivery_id`,
    values: [owner, deliveryIds, leaseMs],
  })
  return new Set(rows.map((row) => row.delivery_id))
}

/** Gives deliveries back that were not attempted: they are due at once. */
export async function putBack(db: Db, { owner, deliveryIds }: OwnDeliveries): Promise<void> {
  await db.query({
    name: 'webhook-put-back',
    text: `update tidegate.webhook_queue set owner = null, expires_at = null where delivery_id in (${ownRows})`,
    values: [owner, deliveryIds],
  })
}

/** What is on the log by now: deliveries with another attempt to come wait for it, the others leave the queue. */
export async function finish(
  db: Db,
  {
    owner,
    finished,
  }: Owner & { finished: readonly { deliveryId: string; nextAttemptAt: number | null }[] },
): Promise<void> {
  await db.query({
    name: 'webhook-finish',
    text: `
      with own as materialized (${ownRows}), gone as (
        delete from tidegate.webhook_queue q using own, unnest($2::text[], $3::bigint[]) as f(delivery_id, due_at)
        where q.delivery_id = own.delivery_id and f.delivery_id = own.delivery_id and f.due_at is null)
      update tidegate.webhook_queue q
      set due_at = f.due_at, attempts = q.attempts + 1, owner = null, expires_at = null
      from own, unnest($2::text[], $3::bigint[]) as f(delivery_id, due_at)
      where q.delivery_id = own.delivery_id and f.delivery_id = own.delivery_id and f.due_at is not null`,
    values: [
      owner,
      finished.map(({ deliveryId }) => deliveryId),
      finished.map(({ nextAttemptAt }) => nextAttemptAt),
    ],
  })
}
