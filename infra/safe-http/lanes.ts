import type { Connector } from './connector.ts'
import { type Lane, openLane } from './lane.ts'

export interface Lanes {
  /** An idle lane to the receiver of the URL, the one used last, or else a new one. */
  take(url: URL): Lane
  /** A lane that never carried anything. */
  open(url: URL): Lane
  /** For the next that goes there; one whose connection is closing ends. */
  giveBack(lane: Lane): void
  /** Ends a lane that was taken. */
  discard(lane: Lane): void
  /** Ends all, idle or not. */
  close(): Promise<void>
}

/** Idle connections to all receivers together; each is a file descriptor. They end by themselves within seconds. */
const mostIdle = 512

/**
 * Keeps connections for reuse. There is no limit for a receiver: it could only make exchanges wait, and one endpoint's
 * slow ones would then use up the time of another's at the same host. Callers limit what they send at once.
 */
export function createLanes(connector: Connector): Lanes {
  const all = new Set<Lane>()
  const idle = new Map<string, Lane[]>()
  let idleCount = 0

  function forget(lane: Lane) {
    const lanes = idle.get(lane.origin)
    const index = lanes?.indexOf(lane) ?? -1
    if (lanes === undefined || index < 0) return
    lanes.splice(index, 1)
    idleCount--
    if (lanes.length === 0) idle.delete(lane.origin)
  }

  function discard(lane: Lane) {
    forget(lane)
    lane.destroy().finally(() => all.delete(lane))
  }

  function open(url: URL): Lane {
    const lane = openLane({ url, connector })
    all.add(lane)
    lane.client.on('disconnect', () => {
      if (idle.get(lane.origin)?.includes(lane)) discard(lane)
    })
    return lane
  }

  return {
    open,
    discard,
    take(url) {
      const lane = idle.get(url.origin)?.at(-1)
      if (!lane) return open(url)
      forget(lane)
      return lane
    },
    giveBack(lane) {
      if (!lane.isOpen() || idleCount >= mostIdle) return discard(lane)
      const lanes = idle.get(lane.origin)
      if (lanes) lanes.push(lane)
      else idle.set(lane.origin, [lane])
      idleCount++
    },
    async close() {
      await Promise.all(Array.from(all, (lane) => lane.destroy()))
    },
  }
}
