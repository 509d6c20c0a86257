import { LRUCache } from 'lru-cache'
import type pg from 'pg'
import type { Clock } from '../../../infra/ids.ts'
import { endSending } from './leases.ts'
import { createLanes, type LeasedDelivery, leaseDue, type WaitingEndpoint, waitingEndpoints } from './take.ts'
import type { Room, Windows } from './window.ts'

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
  /** Whether another process was at some of the endpoints. */
  contended: boolean
  /** When something that is not due yet will be (epoch milliseconds); Infinity for nothing. */
  nextAt: number
}

const pageSize = 500

/**
 * Takes due deliveries for so many free slots. It goes round the endpoints in the order of their ids and begins where
 * it left off, so that each gets its turn when there are more of them than slots.
 */
export function createTaker({ pool, owner, leaseMs, clock, windows }: TakerOptions) {
  const withLanes = new LRUCache<string, true>({ max: 10_000 })
  let leftOffAt = ''

  async function waitingInTurn(): Promise<WaitingEndpoint[]> {
    const all: WaitingEndpoint[] = []
    for (let page = await pageAfter(''); ; page = await pageAfter(all.at(-1)?.endpointId ?? '')) {
      all.push(...page)
      if (page.length < pageSize) break
    }
    const turn = all.findIndex(({ endpointId }) => endpointId > leftOffAt)
    return turn < 0 ? all : [...all.slice(turn), ...all.slice(0, turn)]
  }

  const pageAfter = (after: string) => waitingEndpoints(pool, { after, limit: pageSize })

  async function makeLanes(rooms: Room[]): Promise<void> {
    const unknown = rooms.map(({ endpointId }) => endpointId).filter((id) => !withLanes.has(id))
    if (unknown.length === 0) return
    await createLanes(pool, unknown)
    for (const id of unknown) withLanes.set(id, true)
  }

  return async ({ free, ended }: Take): Promise<Taken> => {
    const now = clock()
    const waiting = await waitingInTurn()
    const due = waiting.filter(({ firstAt }) => firstAt <= now).map(({ endpointId }) => endpointId)
    const nextAt = Math.min(...waiting.map(({ firstAt }) => (firstAt > now ? firstAt : Infinity)))
    const rooms = windows.choose(due, free)
    if (rooms.length === 0) {
      if (ended.length > 0) await endSending(pool, { owner, deliveryIds: ended })
      return { deliveries: [], hasMore: due.length > 0, contended: false, nextAt }
    }
    if (rooms.length === free) leftOffAt = rooms.at(-1)?.endpointId ?? ''
    await makeLanes(rooms)
    const { deliveries, contended } = await leaseDue(pool, { owner, leaseMs, ended, free, rooms, now })
    return { deliveries, contended, nextAt, hasMore: mayHaveMore(deliveries, { due, rooms, free }) }
  }
}

/** Every endpoint whose room was used up may have more, and those that got none. */
function mayHaveMore(
  deliveries: LeasedDelivery[],
  { due, rooms, free }: { due: string[]; rooms: Room[]; free: number },
): boolean {
  if (deliveries.length === free || rooms.length < due.length) return true
  const taken = new Map<string, number>()
  for (const { endpointId } of deliveries) taken.set(endpointId, (taken.get(endpointId) ?? 0) + 1)
  return rooms.some(({ endpointId, room }) => taken.get(endpointId) === room)
}
