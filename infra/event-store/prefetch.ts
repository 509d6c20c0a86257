import type { Clock } from '../ids.ts'

interface PrefetchOptions<Item> {
  // Creates `count` items with one statement.
  create: (count: number) => Promise<Item[]>
  clock: Clock
}

const maxAhead = 64
// A prefetch that is used up within this time is doubled.
const busyWithinMs = 10_000
// Items expire, because the retention of a key starts when it is created.
const unusedMs = 60 * 60 * 1000

/**
 * Prefetches items that are taken one at a time: twice as many each time a prefetch is used up quickly, none otherwise.
 * Items that are not taken within an hour, or before the process ends, are abandoned.
 */
export function createPrefetch<Item>({ create, clock }: PrefetchOptions<Item>) {
  let ready: Item[] = []
  let ahead = 0
  let waiting = 0
  let filledAt = Number.NEGATIVE_INFINITY
  let refilling: Promise<void> | undefined

  async function refill(): Promise<void> {
    // Calls of the same tick share a refill.
    await undefined
    ahead = clock() - filledAt < busyWithinMs ? Math.min(2 * ahead + 1, maxAhead) : 0
    ready = await create(waiting + ahead)
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
