import type { Clock } from '../../infra/ids.ts'
import { createLru } from '../../infra/lru.ts'

/** Sessions that this process opened and whose first decision nobody can read yet. */
export interface Begun {
  add(sessionId: string): void
  /** The first body of a session came; once the decision about it can be read, the session is decided. */
  awaits(sessionId: string, decisionId: string): void
  /** These decisions can be read now. */
  decided(decisionIds: readonly string[]): void
  count(): number
  decidedPerSecond(): number
}

// A session counts no longer than this, because one that sends nothing, or nothing that can be decided about, gets no
// decision.
const abandonedMs = 5000
const meanMs = 8000
const maxSessions = 100_000

export function createBegun(clock: Clock): Begun {
  // Both are in the order of time, so that abandoned sessions come first.
  const sessions = new Map<string, number>()
  const awaited = createLru<string, string>(maxSessions)
  let decided = { count: 0, at: clock() }

  function recent(): { count: number; at: number } {
    const at = clock()
    return { count: decided.count * Math.exp(-Math.max(0, at - decided.at) / meanMs), at }
  }

  function dropAbandoned(): void {
    const before = clock() - abandonedMs
    for (const [sessionId, begunAt] of sessions) {
      if (begunAt > before && sessions.size <= maxSessions) return
      sessions.delete(sessionId)
    }
  }

  return {
    add: (sessionId) => void sessions.set(sessionId, clock()),
    awaits(sessionId, decisionId) {
      if (sessions.has(sessionId)) awaited.set(decisionId, sessionId)
    },
    decided(decisionIds) {
      for (const id of decisionIds) {
        const sessionId = awaited.get(id)
        awaited.delete(id)
        if (sessionId === undefined || !sessions.delete(sessionId)) continue
        const { count, at } = recent()
        decided = { count: count + 1, at }
      }
    },
    count() {
      dropAbandoned()
      return sessions.size
    },
    decidedPerSecond: () => recent().count / (meanMs / 1000),
  }
}
