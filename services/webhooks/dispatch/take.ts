import type { Db } from '../../../infra/postgres/pool.ts'
import type { Room } from './share.ts'
import { maxPerEndpoint } from './window.ts'

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
}

export interface LeaseRequest {
  owner: string
  leaseMs: number
  /** Deliveries of the owner whose requests have ended: they count no more. */
  ended: string[]
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

/** Leases due deliveries; see `leaseFunction`. */
export async function leaseDue(db: Db, request: LeaseRequest): Promise<Leased> {
  const { owner, leaseMs, ended, rooms, now, free } = request
  const { rows } = await db.query<{ lanes: number; deliveries: LeasedDelivery[] | null }>({
    name: 'webhook-lease',
    text: 'select lanes, deliveries from tidegate.lease_webhooks($1, $2, $3, $4, $5, $6, $7, $8)',
    values: [
      owner,
      leaseMs,
      ended,
      rooms.map(({ endpointId }) => endpointId),
      rooms.map(({ room }) => room),
      now,
      free,
      maxPerEndpoint,
    ],
  })
  const [{ lanes, deliveries } = { lanes: 0, deliveries: null }] = rows
  return { deliveries: deliveries ?? [], contended: lanes < rooms.length }
}
