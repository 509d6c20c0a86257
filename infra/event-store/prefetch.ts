import type { Clock } from '../ids.ts'

interface PrefetchOptions<Item> {
  // Makes so many, at the cost of one statement.
  make: (count: number) => Promise<Item[]>
  clock: Clock
}

const maxAhead = 64
// Who comes back within this time to an empty prefetch gets a larger one.
const busyWithinMs = 10_000
// Retention counts from when a key is made.
const unusedMs = 60 * 60 * 1000

/**
 * Makes ahead what is taken one by one: twice as many each time that a prefetch is used up quickly, and none where it is
 * not. What nobody takes within an hour, or before the process ends, is left where it is.
 */
export function createPrefetch<Item>({ make, clock }: PrefetchOptions<Item>) {
  let ready: Item[] = []
  let ahead = 0
  let waiting = 0
  let madeAt = Number.NEGATIVE_INFINITY
  let making: Promise<void> | undefined

  async function refill(): Promise<void> {
    // What is taken in the same tick is made together.
    await undefined
    ahead = clock() - madeAt < busyWithinMs ? Math.min(2 * ahead + 1, maxAhead) : 0
    ready = await make(waiting + ahead)
    madeAt = clock()
  }

  async function next(): Promise<Item> {
    for (;;) {
      const item = ready.pop()
      if (item !== undefined) return item
      making ??= refill().finally(() => {
        making = undefined
      })
      await making
    }
  }

  return {
    take(): Promise<Item> {
      if (clock() - madeAt > unusedMs) ready = []
      waiting += 1
      return next().finally(() => {
        waiting -= 1
      })
    },
  }
}
