import type { Clock } from '../ids.ts'

interface PrefetchOptions<Item> {
  // Creates `count` items with one statement.
  create: (count: number) => Promise<Item[]>
  clock: Clock
}

const maxExtra = 64
// A prefetch that is used up within this time doubles the next one.
const busyWithinMs = 10_000
// Items expire, because the retention of a key starts when it is created.
const unusedMs = 60 * 60 * 1000

/**
 * Prefetches items that are taken one at a time: twice as many after each prefetch that was used up quickly, else none.
 * Items that are not taken within an hour, or before the process ends, are lost.
 */
export function createPrefetch<Item>({ create, clock }: PrefetchOptions<Item>) {
  let ready: Item[] = []
  let extra = 0
  let waiting = 0
  let filledAt = Number.NEGATIVE_INFINITY
  let refilling: Promise<void> | undefined

  async function refill(): Promise<void> {
    // Calls of the same tick share a refill.
    await undefined
    extra = clock() - filledAt < busyWithinMs ? Math.min(2 * extra + 1, maxExtra) : 0
    ready = await create(waiting + extra)
    filledAt = clock()
  }

  async function next(): Promise<Item> {
    for (;;) {
      const item = ready.pop()
      if (item !== undefined) return item
      refilling ??= refill().finally(() => {
        refilling = undefined
      })
      await refilling
    }
  }

  return {
    take(): Promise<Item> {
      if (clock() - filledAt > unusedMs) ready = []
      waiting += 1
      return next().finally(() => {
        waiting -= 1
      })
    },
  }
}
