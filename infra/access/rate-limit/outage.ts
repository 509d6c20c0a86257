import type { Clock } from '../../ids.ts'
import type { Logger } from '../../telemetry.ts'
import type { LocalBucket } from './local-bucket.ts'

const retryMs = 1000

/**
 * Whether the store answers. A bucket whose round trip fails is limited by this process alone and asked for again a
 * second later; once a second bucket fails without an answer in between, all of them are, and one round trip a second
 * finds out whether the store is back. So a single row that somebody holds, or cannot be written, is no outage.
 */
export function createOutage({ clock, logger }: { clock: Clock; logger: Logger }) {
  let isAway = false
  let retryAt = 0
  /** Buckets that began to fail since the store last answered. */
  let failures = 0
  const reported = new WeakSet<LocalBucket>()

  function postpone(bucket: LocalBucket): void {
    bucket.retryAt = clock() + retryMs
    if (isAway) retryAt = bucket.retryAt
  }

  return {
    isAway: () => isAway,
    /** Whether a round trip of the bucket may start now in the background. While the store is away, counts as one. */
    mayAsk(bucket: LocalBucket): boolean {
      const now = clock()
      if (bucket.retryAt !== undefined && now < bucket.retryAt) return false
      if (!isAway) return true
      if (now < retryAt) return false
      retryAt = now + retryMs
      return true
    },
    failed(bucket: LocalBucket, err: unknown): void {
      const isNew = bucket.retryAt === undefined
      if (isNew && !isAway) {
        failures++
        isAway = failures > 1
        if (isAway)
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
    /** The round trip ended after it had failed: only now can another one start. */
    postpone,
    answered(bucket: LocalBucket): void {
      if (isAway) logger.info('rate limits: the shared buckets are back')
      else if (reported.has(bucket))
        logger.info({ bucket: bucket.id }, 'rate limits: a shared bucket is back')
      reported.delete(bucket)
      isAway = false
      failures = 0
      bucket.retryAt = undefined
    },
  }
}

export type Outage = ReturnType<typeof createOutage>
