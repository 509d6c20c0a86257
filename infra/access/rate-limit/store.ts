import type { SharedBucket } from './shared.ts'

export interface Change<T> {
  row: SharedBucket
  result: T
}

/** Where processes share their buckets. */
export interface BucketStore {
  /**
   * Replaces the bucket (undefined: there is none yet) by what `change` makes of it, one change of a bucket at a
   * time over all processes. `now` is epoch milliseconds by a clock that all processes share. `change` is pure.
   * Rejects when the store cannot be reached; the change may then have happened or not, but only if `change` was
   * called, and never happens after a later change of the same bucket. Must settle: until then the bucket is not
   * asked for again.
   */
  update<T>(bucketId: string, change: (row: SharedBucket | undefined, now: number) => Change<T>): Promise<T>
}
