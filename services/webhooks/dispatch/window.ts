import { LRUCache } from 'lru-cache'
import type { DueEndpoint } from './due.ts'
import { type Claim, type Room, shareOut } from './share.ts'

/** At most so many requests at once to one endpoint, over all processes. */
export const maxPerEndpoint = 10
/** At most so many requests at once in one process. */
export const maxSending = 256
/** An endpoint that this process knows nothing of may be dead: it shows before it has many slots. */
const firstLimit = 2
/** A request that takes longer holds a slot that others could use many times over. */
const slowMs = 1000
/** After a request that met nobody: twice as long each time. A refused one costs its receiver nothing, and us all the rest. */
const pauses = { first: 50, last: 1000 }
const maxRemembered = 10_000
/** Of the slots: for all slow endpoints together, for those of one organization, and for those with nothing running. */
const shares = { slow: 1 / 2, organization: 1 / 4, kept: 1 / 4 }

/** What one process knows of an endpoint. */
export interface Window {
  /** How many requests it makes at once, 1 to 10. */
  limit: number
  running: number
  /** Its last request took long or met nobody. */
  isSlow: boolean
  /** Whom it belongs to; empty before it was first chosen. */
  organizationId: string
  /** Since when none of the running requests has ended (milliseconds of the clock). */
  quietSince: number
  /** How long nothing is sent after its last request (milliseconds); 0 once it has answered. */
  pauseMs: number
  /** Its place in the order in which endpoints got room the last time; 0 before it got any. */
  chosen: number
}

export interface RequestEnd {
  /** Whether the receiver answered at all, with whatever status. */
  answered: boolean
  durationMs: number
}

/** One more at once after each answer, half as many after none: a dead endpoint soon holds one slot. Pure. */
export function nextWindow(
  { limit, pauseMs }: Pick<Window, 'limit' | 'pauseMs'>,
  { answered, durationMs }: RequestEnd,
): Pick<Window, 'limit' | 'pauseMs' | 'isSlow'> {
  return {
    limit: answered ? Math.min(limit + 1, maxPerEndpoint) : Math.max(1, Math.floor(limit / 2)),
    isSlow: !answered || durationMs > slowMs,
    pauseMs: answered ? 0 : Math.min(Math.max(2 * pauseMs, pauses.first), pauses.last),
  }
}

export interface Choice {
  rooms: Room[]
  /** Whether something due got no room, so that it is worth another look when slots get free. */
  hasMore: boolean
  /** After how many milliseconds the first endpoint that pauses may be sent something; Infinity for none. */
  pausedMs: number
}

export interface Windows {
  began(endpointId: string): void
  /** `end` is left out when nothing was sent after all. */
  ended(endpointId: string, end?: RequestEnd): void
  /**
   * Which of the endpoints get some of the free slots. Those come first that got room longest ago, so that each is
   * chosen after a bounded number of choices. All slow endpoints together hold half of the slots at most, and those of
   * one organization a quarter; a quarter is kept for endpoints that have nothing running.
   */
  choose(due: readonly DueEndpoint[], free: number): Choice
}

export interface WindowsOptions {
  slots?: number
  /** Milliseconds that never go back. */
  now?: () => number
}

export function createWindows({
  slots = maxSending,
  now = () => performance.now(),
}: WindowsOptions = {}): Windows {
  const windows = new LRUCache<string, Window>({ max: maxRemembered })
  let choices = 0

  function windowOf(endpointId: string): Window {
    const unknown = {
      limit: firstLimit,
      running: 0,
      isSlow: false,
      organizationId: '',
      quietSince: 0,
      pauseMs: 0,
      chosen: 0,
    }
    return windows.get(endpointId) ?? unknown
  }

  /** One whose requests all stall shows only when they time out, and would hold its slots until then. */
  const isSlowNow = ({ isSlow, running, quietSince }: Window) =>
    isSlow || (running > 0 && now() - quietSince > slowMs)

  const pauseLeft = ({ pauseMs, quietSince }: Window) => Math.max(0, quietSince + pauseMs - now())

  function claimOf({ endpointId, organizationId, due }: DueEndpoint): Claim & { chosen: number } {
    const window = windowOf(endpointId)
    const { running, limit, chosen } = window
    const wanted = pauseLeft(window) > 0 ? 0 : Math.min(limit, due) - running
    return { endpointId, organizationId, running, wanted, isSlow: isSlowNow(window), chosen }
  }

  function held() {
    const organizations = new Map<string, number>()
    let slow = 0
    for (const window of windows.values()) {
      const { running, organizationId } = window
      if (running === 0) continue
      organizations.set(organizationId, (organizations.get(organizationId) ?? 0) + running)
      if (isSlowNow(window)) slow += running
    }
    return { slow, of: (organizationId: string) => organizations.get(organizationId) ?? 0 }
  }

  function remember(rooms: Room[], due: readonly DueEndpoint[]): void {
    const organizations = new Map(due.map(({ endpointId, organizationId }) => [endpointId, organizationId]))
    for (const { endpointId } of rooms) {
      const organizationId = organizations.get(endpointId) ?? ''
      windows.set(endpointId, { ...windowOf(endpointId), organizationId, chosen: ++choices })
    }
  }

  return {
    began(endpointId) {
      const window = windowOf(endpointId)
      const quietSince = window.running === 0 ? now() : window.quietSince
      windows.set(endpointId, { ...window, running: window.running + 1, quietSince })
    },
    ended(endpointId, end) {
      const window = windowOf(endpointId)
      const running = Math.max(0, window.running - 1)
      windows.set(endpointId, { ...window, running, quietSince: now(), ...(end && nextWindow(window, end)) })
    },
    choose(due, free) {
      const { slow, of } = held()
      const claims = due.map(claimOf).toSorted((a, b) => a.chosen - b.chosen)
      const share = (part: keyof typeof shares) => Math.floor(slots * shares[part])
      const rooms = shareOut(claims, {
        free,
        kept: share('kept'),
        slow: share('slow') - slow,
        ofOrganization: (organizationId) => share('organization') - of(organizationId),
      })
      remember(rooms, due)
      const pausing = due.map(({ endpointId }) => pauseLeft(windowOf(endpointId)) || Infinity)
      const pausedMs = pausing.reduce((least, ms) => Math.min(least, ms), Infinity)
      return { rooms, pausedMs, hasMore: isLeft(due, rooms, (id) => windowOf(id).running) }
    },
  }
}

function isLeft(
  due: readonly DueEndpoint[],
  rooms: Room[],
  running: (endpointId: string) => number,
): boolean {
  const given = new Map(rooms.map(({ endpointId, room }) => [endpointId, room]))
  return due.some((one) => one.due > running(one.endpointId) + (given.get(one.endpointId) ?? 0))
}
