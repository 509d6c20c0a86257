import type { Clock } from '../../ids.ts'
import type { Logger } from '../../telemetry.ts'
import type { LocalBucket } from './local-bucket.ts'

const retryMs = 1000

/**
 * Whether the store answers. A bucket whose exchange fails is limited by this process alone and asked for again a second
 * later. Once a second bucket fails without an answer in between, all of them are, and one exchange a second finds out
 * whether the store is back. So a single row that is locked, or cannot be written, does not count as a store that is down.
 */
export function createStoreHealth({ clock, logger }: { clock: Clock; logger: Logger }) {
  let isDown = false
  let retryAt = 0
  // Buckets that began to fail since the store last answered.
  let failures = 0
  const reported = new WeakSet<LocalBucket>()

  function postpone(bucket: LocalBucket): void {
    bucket.retryAt = clock() + retryMs
    if (isDown) retryAt = bucket.retryAt
  }

  return {
    isDown: () => isDown,
    /** Whether an exchange of the bucket may start now in the background. While the store is down, counts as one. */
    mayTry(bucket: LocalBucket): boolean {
      const now = clock()
      if (bucket.retryAt !== undefined && now < bucket.retryAt) return false
      if (!isDown) return true
      if (now < retryAt) return false
      retryAt = now + retryMs
      return true
    },
    failed(bucket: LocalBucket, err: unknown): void {
      const isNew = bucket.retryAt === undefined
      if (isNew && !isDown) {
        failures++
        isDown = failures > 1
        if (isDown)
          logger.warn({ err }, 'rate limits: the shared buckets are away, this process limits alone')
        else {
          reported.add(bucket)
          logger.warn(
            { err, bucket: bucket.id },
            'rate limits: a shared bucket is away, this process limits it alone',
          )
        }
      }
      postpone(bucket)
    },
    postpone,
    answered(bucket: LocalBucket): void {
      if (isDown) logger.info('rate limits: the shared buckets are back')
      else if (reported.has(bucket))
        logger.info({ bucket: bucket.id }, 'rate limits: a shared bucket is back')
      reported.delete(bucket)
      isDown = false
      failures = 0
      bucket.retryAt = undefined
    },
  }
}

export type StoreHealth = ReturnType<typeof createStoreHealth>
