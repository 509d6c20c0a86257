export interface GroupCommitOptions<Item, Result> {
  /** Returns one result per record, in order. */
  write: (records: Item[]) => Promise<Result[]>
  maxRecords: number
  maxBytes?: number
  bytesOf?: (record: Item) => number
}

type Limits<Item> = Required<Omit<GroupCommitOptions<Item, never>, 'write'>>

interface PendingAppend<Item, Result> {
  records: Item[]
  bytes: number
  resolve: (results: Result[]) => void
  reject: (error: unknown) => void
}

/**
 * Group commit: appends that arrive while a batch is being written form the next batch. One batch at a time keeps their
 * order. A failed batch also fails the pending appends, so no caller waits for two timeouts.
 */
export function createGroupCommit<Item, Result>({
  write,
  maxRecords,
  maxBytes = Number.POSITIVE_INFINITY,
  bytesOf = () => 0,
}: GroupCommitOptions<Item, Result>) {
  const limits = { maxRecords, maxBytes, bytesOf }
  let pending: PendingAppend<Item, Result>[] = []
  let draining: Promise<void> | undefined

  async function drain(): Promise<void> {
    // Appends of the same tick share a batch.
    await undefined
    while (pending.length > 0) {
      const batch = takeBatch()
      try {
        resolveBatch(batch, await write(batch.flatMap((append) => append.records)))
      } catch (error) {
        for (const append of [...batch, ...pending.splice(0)]) append.reject(error)
      }
    }
    draining = undefined
  }

  function takeBatch(): PendingAppend<Item, Result>[] {
    let records = 0
    let bytes = 0
    const end = pending.findIndex((append, i) => {
      records += append.records.length
      bytes += append.bytes
      return i > 0 && (records > maxRecords || bytes > maxBytes)
    })
    const batch = end < 0 ? pending : pending.slice(0, end)
    pending = end < 0 ? [] : pending.slice(end)
    return batch
  }

  function enqueue(records: Item[]): Promise<Result[]> {
    const bytes = records.reduce((sum, record) => sum + bytesOf(record), 0)
    return new Promise((resolve, reject) => {
      pending.push({ records, bytes, resolve, reject })
      draining ??= drain()
    })
  }

  return {
    async append(records: Item[]): Promise<Result[]> {
      // Fast path for nearly every append: nothing to split or to join.
      if (records.length === 1) return enqueue(records)
      const chunks = splitByLimits(records, limits)
      return (await Promise.all(chunks.map(enqueue))).flat()
    },
    idle: async () => draining,
  }
}

function resolveBatch<Item, Result>(batch: PendingAppend<Item, Result>[], results: Result[]): void {
  let start = 0
  for (const append of batch) {
    append.resolve(results.slice(start, start + append.records.length))
    start += append.records.length
  }
}

function splitByLimits<Item>(
  records: Item[],
  { maxRecords, maxBytes, bytesOf }: Limits<Item>,
): Item[][] {
  const chunks: Item[][] = []
  let bytes = 0
  for (const record of records) {
    const chunk = chunks.at(-1)
    bytes += bytesOf(record)
    if (chunk && chunk.length < maxRecords && bytes <= maxBytes) chunk.push(record)
    else {
      chunks.push([record])
      bytes = bytesOf(record)
    }
  }
  return chunks
}
