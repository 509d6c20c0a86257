import { setImmediate as settled } from 'node:timers/promises'

interface Entry {
  at: number
  order: number
  run: () => void
}

/** A clock whose time passes only in `runUntil`, and what is to happen at which time. */
export function createVirtualTime(start = 1_000_000) {
  let now = start
  let order = 0
  const entries: Entry[] = []

  function at(time: number, run: () => void): void {
    const entry = { at: time, order: order++, run }
    const index = entries.findLastIndex((other) => other.at <= time)
    entries.splice(index + 1, 0, entry)
  }

  return {
    clock: () => now,
    at,
    after: (ms: number) => new Promise<void>((resolve) => at(now + ms, resolve)),
    /** For createRateLimiter. */
    every(ms: number, run: () => void): () => void {
      let stopped = false
      const again = () => {
        if (stopped) return
        run()
        at(now + ms, again)
      }
      at(now + ms, again)
      return () => {
        stopped = true
      }
    },
    /** Runs everything due by `end`, each with all that follows from it at once. */
    async runUntil(end: number): Promise<void> {
      for (let next = entries[0]; next && next.at <= end; next = entries[0]) {
        entries.shift()
        now = Math.max(now, next.at)
        next.run()
        await settled()
      }
      now = Math.max(now, end)
    },
  }
}
