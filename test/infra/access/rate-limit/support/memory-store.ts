import type { BucketStore, SharedBucket } from '../../../../../infra/access/rate-limit/shared-bucket.ts'

export interface MemoryStoreOptions {
  clock: () => number
  /** Awaited before a change and once more before its answer. */
  travel?: () => Promise<void>
}

/** Buckets in memory, with the rows as the JSON that a database would hold. */
export function createMemoryStore({ clock, travel }: MemoryStoreOptions) {
  const rows = new Map<string, string>()
  let roundTrips = 0
  const store: BucketStore = {
    async update(bucketId, change) {
      roundTrips++
      if (travel) await travel()
      const text = rows.get(bucketId)
      const { row, result } = change(text === undefined ? undefined : JSON.parse(text), clock())
      rows.set(bucketId, JSON.stringify(row))
      if (travel) await travel()
      return result
    },
  }
  return {
    store,
    roundTrips: () => roundTrips,
    row(bucketId: string): SharedBucket {
      return JSON.parse(rows.get(bucketId) ?? 'null')
    },
  }
}
