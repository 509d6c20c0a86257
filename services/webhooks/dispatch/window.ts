import { LRUCache } from 'lru-cache'

/** At most so many requests at once to one endpoint, over all processes. */
export const maxPerEndpoint = 10
/** At most so many requests at once in one process. */
export const maxSending = 256
/** An endpoint that this process knows nothing of may be dead: it shows before it has many slots. */
const firstLimit = 2
/** A request that takes longer holds a slot that others could use many times over. */
const slowMs = 1000
const maxRemembered = 10_000

/** What one process knows of an endpoint. */
export interface Window {
  /** How many requests it makes at once, 1 to 10. */
  limit: number
  running: number
  /** Its last request took long or met nobody. */
  isSlow: boolean
}

export interface RequestEnd {
  /** Whether the receiver answered at all, with whatever status. */
  answered: boolean
  durationMs: number
}

/** One more at once after each answer, half as many after none: a dead endpoint soon holds one slot. Pure. */
export function nextWindow(
  { limit }: Pick<Window, 'limit'>,
  { answered, durationMs }: RequestEnd,
): Pick<Window, 'limit' | 'isSlow'> {
  return {
    limit: answered ? Math.min(limit + 1, maxPerEndpoint) : Math.max(1, Math.floor(limit / 2)),
    isSlow: !answered || durationMs > slowMs,
  }
}

export interface Room {
  endpointId: string
  /** How many requests may be begun. */
  room: number
}

export interface Windows {
  began(endpointId: string): void
  /** `end` is left out when nothing was sent after all. */
  ended(endpointId: string, end?: RequestEnd): void
  /**
   * Which of the endpoints get some of the free slots, in the order given, at most as many as there are slots. All
   * slow endpoints together hold half of the slots at most, so that those that answer at once always find one.
   */
  choose(endpointIds: string[], free: number): Room[]
}

export function createWindows(slots = maxSending): Windows {
  const windows = new LRUCache<string, Window>({ max: maxRemembered })
  const windowOf = (endpointId: string): Window =>
    windows.get(endpointId) ?? { limit: firstLimit, running: 0, isSlow: false }

  function freeForSlow(): number {
    let held = 0
    for (const window of windows.values()) if (window.isSlow) held += window.running
    return Math.floor(slots / 2) - held
  }

  return {
    began(endpointId) {
      const window = windowOf(endpointId)
      windows.set(endpointId, { ...window, running: window.running + 1 })
    },
    ended(endpointId, end) {
      const window = windowOf(endpointId)
      const running = Math.max(0, window.running - 1)
      windows.set(endpointId, { ...window, running, ...(end ? nextWindow(window, end) : {}) })
    },
    choose(endpointIds, free) {
      const rooms: Room[] = []
      let leftForSlow = freeForSlow()
      for (const endpointId of endpointIds) {
        if (rooms.length >= free) break
        const { limit, running, isSlow } = windowOf(endpointId)
        const room = Math.min(limit - running, isSlow ? leftForSlow : limit)
        if (room <= 0) continue
        if (isSlow) leftForSlow -= room
        rooms.push({ endpointId, room })
      }
      return rooms
    },
  }
}
