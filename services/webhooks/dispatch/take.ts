import type pg from 'pg'
import { type Db, type Tx, transaction } from '../../../infra/postgres/pool.ts'
import { maxPerEndpoint, type Room } from './window.ts'

/** An endpoint with deliveries that wait for an attempt. */
export interface WaitingEndpoint {
  endpointId: string
  /** When the first of them is due (epoch milliseconds). */
  firstAt: number
}

export interface WaitingPage {
  /** Endpoints whose id is greater come, in the order of their ids. */
  after: string
  limit: number
}

/**
 * Endpoints that deliveries wait for. It looks into the index once for each endpoint, however many wait for it: a
 * queue of a million for a dead endpoint costs the others nothing.
 */
export async function waitingEndpoints(db: Db, { after, limit }: WaitingPage): Promise<WaitingEndpoint[]> {
  const { rows } = await db.query<WaitingEndpoint>({
    name: 'webhook-waiting',
    text: `
      with recursive waiting as (
        (select endpoint_id, next_attempt_at, 1 as place from read.webhook_deliveries
          where endpoint_id > $1 and next_attempt_at is not null
          order by endpoint_id, next_attempt_at limit 1)
        union all
        select next.* from waiting, lateral (
          select endpoint_id, next_attempt_at, waiting.place + 1 from read.webhook_deliveries
           where endpoint_id > waiting.endpoint_id and next_attempt_at is not null
           order by endpoint_id, next_attempt_at limit 1) next
         where waiting.place < $2
      )
      select endpoint_id as "endpointId", next_attempt_at::float8 as "firstAt" from waiting order by place`,
    values: [after, limit],
  })
  return rows
}

/** Makes the lanes of endpoints that have none yet. */
export async function createLanes(db: Db, endpointIds: string[]): Promise<void> {
  await db.query(
    `insert into tidegate.webhook_lanes (endpoint_id) select * from unnest($1::text[]) order by 1
     on conflict do nothing`,
    [endpointIds],
  )
}

/** A delivery to make, as it was when it was leased. */
export interface LeasedDelivery {
  id: string
  eventId: string
  endpointId: string
  organizationId: string
  attempts: number
  attemptsInRound: number
  /** When it was due (epoch milliseconds). */
  dueAt: number
  /** When it was raised (epoch milliseconds). */
  createdAt: number
}

export interface LeaseRequest {
  owner: string
  leaseMs: number
  /** How many deliveries at most. */
  free: number
  /** At which endpoints, and how many of each at most. */
  rooms: Room[]
  /** Epoch milliseconds. */
  now: number
}

export interface Leased {
  deliveries: LeasedDelivery[]
  /** Whether another process was at some of the endpoints, where something may be left. */
  contended: boolean
}

/**
 * Leases due deliveries, one of each endpoint before a second of any. Whoever has an endpoint's lane locked is alone
 * in leasing there, and nobody waits for a lane: with it locked the count of leases is exact, and no endpoint gets more
 * requests at once than it may, however many processes there are. May commit late: what is lost with a crashing
 * database are leases, and only together with all that was written after them.
 */
export function leaseDue(pool: pg.Pool, request: LeaseRequest): Promise<Leased> {
  return transaction(
    pool,
    async (tx) => {
      const lanes = await lockLanes(tx, request.rooms)
      const contended = lanes.length < request.rooms.length
      const deliveries = lanes.length > 0 ? await insertLeases(tx, { ...request, rooms: lanes }) : []
      return { deliveries, contended }
    },
    { syncCommit: false },
  )
}

async function lockLanes(tx: Tx, rooms: Room[]): Promise<Room[]> {
  const { rows } = await tx.query<{ endpoint_id: string }>({
    name: 'webhook-lock-lanes',
    text: `select endpoint_id from tidegate.webhook_lanes where endpoint_id = any($1) for update skip locked`,
    values: [rooms.map(({ endpointId }) => endpointId)],
  })
  const locked = new Set(rows.map((row) => row.endpoint_id))
  return rooms.filter(({ endpointId }) => locked.has(endpointId))
}

/**
 * A statement of its own, whose snapshot is taken with the lanes locked: it sees the leases of whoever had them
 * before. And a lease is given back only once the read model shows what became of the delivery, so that a snapshot
 * without the lease never shows the delivery as it was before.
 */
async function insertLeases(
  tx: Tx,
  { owner, leaseMs, free, rooms, now }: LeaseRequest,
): Promise<LeasedDelivery[]> {
  const { rows } = await tx.query<LeasedDelivery>({
    name: 'webhook-lease',
    text: `
      with picked as (
        select due.*, row_number() over (partition by lane.endpoint_id order by next_attempt_at) as turn
        from unnest($3::text[], $4::integer[]) as lane(endpoint_id, room)
        cross join lateral (
          select d.delivery_id, d.event_id, d.endpoint_id, d.organization_id, d.attempts, d.attempts_in_round,
                 d.next_attempt_at, d.created_at
          from read.webhook_deliveries d
          where d.endpoint_id = lane.endpoint_id and d.next_attempt_at <= $5
            and not exists (select from tidegate.webhook_leases l where l.delivery_id = d.delivery_id)
          order by d.next_attempt_at, d.delivery_id
          limit greatest(0, least(lane.room, $6 - (
            select count(*) from tidegate.webhook_leases l where l.endpoint_id = lane.endpoint_id and l.sending)))
        ) due
        order by turn, next_attempt_at limit $7
      ), leased as (
        insert into tidegate.webhook_leases (delivery_id, endpoint_id, owner, expires_at)
        select delivery_id, endpoint_id, $1, clock_timestamp() + $2 * interval '1 millisecond' from picked
        on conflict do nothing returning delivery_id
      )
      select delivery_id as id, event_id as "eventId", endpoint_id as "endpointId",
             organization_id as "organizationId", attempts, attempts_in_round as "attemptsInRound",
             next_attempt_at::float8 as "dueAt", created_at::float8 as "createdAt"
      from picked join leased using (delivery_id)`,
    values: [
      owner,
      leaseMs,
      rooms.map(({ endpointId }) => endpointId),
      rooms.map(({ room }) => room),
      now,
      maxPerEndpoint,
      free,
    ],
  })
  return rows
}
