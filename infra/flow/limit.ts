import { unavailable } from '../errors/errors.ts'

export interface ConcurrencyLimitOptions {
  /** Maximum number of concurrent runs in this process. */
  max: number
  /** Maximum number of concurrent runs per name (default 1). A function is called on each check. */
  maxPerName?: number | (() => number)
  /** Milliseconds that `run` waits for a slot (default 5000). */
  timeoutMs?: number
}

export interface ConcurrencyLimit {
  /**
   * Runs the work once each of its names has a free slot. Among waiting work, the one whose names have the fewest runs
   * goes first, then first come, first served. Rejects with 503 on a timeout.
   */
  run<T>(names: readonly string[], work: () => Promise<T>): Promise<T>
  /** Takes a slot if one is free. Returns a function that releases it, to be called exactly once. */
  tryEnter(names: readonly string[]): (() => void) | undefined
}

interface Waiting {
  names: readonly string[]
  start: () => void
}

export function createConcurrencyLimit(options: ConcurrencyLimitOptions): ConcurrencyLimit {
  const { max, maxPerName = 1, timeoutMs = 5000 } = options
  const running = new Map<string, number>()
  const queue = new Set<Waiting>()
  let total = 0

  function addRuns(names: readonly string[], by: number): void {
    total += by
    for (const name of names) {
      const count = (running.get(name) ?? 0) + by
      if (count === 0) running.delete(name)
      else running.set(name, count)
    }
  }

  const mostRunning = (names: readonly string[]) =>
    Math.max(0, ...names.map((name) => running.get(name) ?? 0))
  const hasSlot = (names: readonly string[]) =>
    total < max && mostRunning(names) < (typeof maxPerName === 'number' ? maxPerName : maxPerName())

  function findNext(): Waiting | undefined {
    let next: Waiting | undefined
    for (const waiting of queue) {
      if (!hasSlot(waiting.names)) continue
      if (!next || mostRunning(waiting.names) < mostRunning(next.names)) next = waiting
      if (mostRunning(next.names) === 0) break
    }
    return next
  }

  function startNext(): void {
    while (total < max) {
      const next = findNext()
      if (!next) return
      queue.delete(next)
      addRuns(next.names, 1)
      next.start()
    }
  }

  function leave(names: readonly string[]): void {
    addRuns(names, -1)
    startNext()
  }

  function enter(names: readonly string[]): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      queue.delete(waiting)
      reject(unavailable(new Error('timed out waiting for a free slot')))
    }, timeoutMs)
    const waiting: Waiting = {
      names,
      start() {
        clearTimeout(timer)
        resolve()
      },
    }
    queue.add(waiting)
    startNext()
    return promise
  }

  return {
    async run(names, work) {
      await enter(names)
      try {
        return await work()
      } finally {
        leave(names)
      }
    },
    tryEnter(names) {
      if (!hasSlot(names)) return undefined
      addRuns(names, 1)
      return () => leave(names)
    },
  }
}
