import { LRUCache } from 'lru-cache'
import type pg from 'pg'
import type { Clock } from '../../../infra/ids.ts'
import { dueEndpoints } from './due.ts'
import { endSending } from './leases.ts'
import type { Room } from './share.ts'
import { createLanes, type LeasedDelivery, leaseDue } from './take.ts'
import type { Windows } from './window.ts'

export interface TakerOptions {
  /** Commits without waiting for the disk. */
  pool: pg.Pool
  owner: string
  leaseMs: number
  clock: Clock
  windows: Windows
}

export interface Take {
  /** How many deliveries at most. */
  free: number
  /** Deliveries whose requests have ended since the last take. */
  ended: string[]
}

export interface Taken {
  deliveries: LeasedDelivery[]
  /** Whether more may be due than was taken, so that it is worth another look when slots get free. */
  hasMore: boolean
  /** When there may be something to take that could not be taken now (epoch milliseconds); Infinity for nothing. */
  nextAt: number
}

/** After how long an endpoint is looked at again where another process was; twice as long each time, up to the last. */
const contendedMs = { first: 20, last: 500 }

/** Takes due deliveries for so many free slots. */
export function createTaker({ pool, owner, leaseMs, clock, windows }: TakerOptions) {
  const withLanes = new LRUCache<string, true>({ max: 10_000 })
  let waitMs = contendedMs.first

  async function makeLanes(rooms: Room[]): Promise<void> {
    const unknown = rooms.map(({ endpointId }) => endpointId).filter((id) => !withLanes.has(id))
    if (unknown.length === 0) return
    await createLanes(pool, unknown)
    for (const id of unknown) withLanes.set(id, true)
  }

  /**
   * A lane that could not be locked is another process's, or it is lost: it was made without waiting for the disk, and
   * the database crashed. So they are made again before the next look.
   */
  function lookAgainIn(rooms: Room[], contended: boolean): number {
    if (!contended) {
      waitMs = contendedMs.first
      return Infinity
    }
    for (const { endpointId } of rooms) withLanes.delete(endpointId)
    const ms = waitMs
    waitMs = Math.min(2 * waitMs, contendedMs.last)
    return ms
  }

  return async ({ free, ended }: Take): Promise<Taken> => {
    const now = clock()
    const due = await dueEndpoints(pool, { now })
    const { rooms, hasMore, pausedMs } = windows.choose(due.endpoints, free)
    const nextAt = Math.min(due.nextAt, now + Math.ceil(pausedMs))
    if (rooms.length === 0) {
      if (ended.length > 0) await endSending(pool, { owner, deliveryIds: ended })
      return { deliveries: [], hasMore, nextAt }
    }
    await makeLanes(rooms)
    const { deliveries, contended } = await leaseDue(pool, { owner, leaseMs, ended, free, rooms, now })
    return { deliveries, hasMore, nextAt: Math.min(nextAt, now + lookAgainIn(rooms, contended)) }
  }
}
