import { unavailable } from '../errors/errors.ts'

export interface SlotOptions {
  /** How much may run at once. */
  max: number
  /** How long to wait for a turn before the caller gets 503. */
  timeoutMs: number
}

interface Waiting {
  names: string[]
  start: () => void
}

/** Takes turns within this process: at most `max` at once, and one at a time for each name. First come, first served. */
export function createSlots({ max, timeoutMs }: SlotOptions) {
  const held = new Set<string>()
  const queue = new Set<Waiting>()
  let running = 0

  function startNext(): void {
    for (const waiting of queue) {
      if (running >= max) return
      if (waiting.names.some((name) => held.has(name))) continue
      queue.delete(waiting)
      running++
      for (const name of waiting.names) held.add(name)
      waiting.start()
    }
  }

  function acquire(names: string[]): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      queue.delete(waiting)
      reject(unavailable(new Error('too many commands are waiting for their turn')))
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
    /** Runs `work` when it is its turn; rejects with ApiError service.unavailable when that takes too long. */
    async run<T>(names: string[], work: () => Promise<T>): Promise<T> {
      await acquire(names)
      try {
        return await work()
      } finally {
        running--
        for (const name of names) held.delete(name)
        startNext()
      }
    },
  }
}
