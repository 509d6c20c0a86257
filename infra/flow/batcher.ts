export interface BatcherOptions<Item, Result> {
  /** Returns one result per item, in order. */
  runBatch: (items: Item[]) => Promise<Result[]>
  maxItems: number
  maxBytes?: number
  bytesOf?: (item: Item) => number
}

type Limits<Item> = Required<Omit<BatcherOptions<Item, never>, 'runBatch'>>

interface PendingCall<Item, Result> {
  items: Item[]
  bytes: number
  resolve: (results: Result[]) => void
  reject: (error: unknown) => void
}

/**
 * Batches concurrent calls (group commit): calls that arrive while a batch is running form the next one. Batches run
 * one at a time, in order. A failed batch also fails the pending calls, so no caller waits for two timeouts.
 */
export function createBatcher<Item, Result>({
  runBatch,
  maxItems,
  maxBytes = Number.POSITIVE_INFINITY,
  bytesOf = () => 0,
}: BatcherOptions<Item, Result>) {
  const limits = { maxItems, maxBytes, bytesOf }
  let pending: PendingCall<Item, Result>[] = []
  let draining: Promise<void> | undefined

  async function drain(): Promise<void> {
    // Calls of the same tick share a batch.
    await undefined
    while (pending.length > 0) {
      const batch = takeBatch()
      try {
        resolveBatch(batch, await runBatch(batch.flatMap((call) => call.items)))
      } catch (error) {
        for (const call of [...batch, ...pending.splice(0)]) call.reject(error)
      }
    }
    draining = undefined
  }

  function takeBatch(): PendingCall<Item, Result>[] {
    let items = 0
    let bytes = 0
    const end = pending.findIndex((call, i) => {
      items += call.items.length
      bytes += call.bytes
      return i > 0 && (items > maxItems || bytes > maxBytes)
    })
    const batch = end < 0 ? pending : pending.slice(0, end)
    pending = end < 0 ? [] : pending.slice(end)
    return batch
  }

  function enqueue(items: Item[]): Promise<Result[]> {
    const bytes = items.reduce((sum, item) => sum + bytesOf(item), 0)
    return new Promise((resolve, reject) => {
      pending.push({ items, bytes, resolve, reject })
      draining ??= drain()
    })
  }

  return {
    /** Runs the items in one batch, or in several beyond the limits. Resolves with their results, in order. */
    async run(items: Item[]): Promise<Result[]> {
      // Fast path for nearly every call: no split and no join.
      if (items.length === 1) return enqueue(items)
      const chunks = splitByLimits(items, limits)
      return (await Promise.all(chunks.map(enqueue))).flat()
    },
    idle: async () => draining,
  }
}

function resolveBatch<Item, Result>(batch: PendingCall<Item, Result>[], results: Result[]): void {
  let start = 0
  for (const call of batch) {
    call.resolve(results.slice(start, start + call.items.length))
    start += call.items.length
  }
}

function splitByLimits<Item>(
  items: Item[],
  { maxItems, maxBytes, bytesOf }: Limits<Item>,
): Item[][] {
  const chunks: Item[][] = []
  let bytes = 0
  for (const item of items) {
    const chunk = chunks.at(-1)
    bytes += bytesOf(item)
    if (chunk && chunk.length < maxItems && bytes <= maxBytes) chunk.push(item)
    else {
      chunks.push([item])
      bytes = bytesOf(item)
    }
  }
  return chunks
}
