import type { RateLimiter, RateLimitRequest } from '../../infra/access/rate-limit/limiter.ts'

export interface MemoryLimiter extends RateLimiter {
  /** All requests. Refunds have a negative cost. */
  consumed: RateLimitRequest[]
}

/** Creates exact in-process token buckets, as described in service.md 8.1. With `later`, responds asynchronously. */
export function createMemoryLimiter(clock: () => number, { later = false } = {}): MemoryLimiter {
  const buckets = new Map<string, { level: number; at: number }>()
  const consumed: RateLimitRequest[] = []

  function bucketOf({ owner, bucket: name, limit }: RateLimitRequest) {
    const key = `${owner}|${name}`
    const bucket = buckets.get(key) ?? { level: limit, at: clock() }
    const refilled = bucket.level + ((clock() - bucket.at) / 60_000) * limit
    const current = { level: Math.min(limit, refilled), at: clock() }
    buckets.set(key, current)
    return current
  }

  return {
    consumed,
    consume(request) {
      consumed.push(request)
      const bucket = bucketOf(request)
      const admitted = bucket.level >= request.cost
      bucket.level -= request.cost
      const { limit, cost } = request
      const wait = Math.max(1, Math.ceil(((cost - bucket.level) * 60) / limit))
      const remaining = Math.max(0, Math.floor(bucket.level))
      const answer = { admitted, limit, remaining, cost, retryAfterSeconds: admitted ? 0 : wait }
      return later ? Promise.resolve(answer) : answer
    },
    refund(request) {
      consumed.push({ ...request, cost: -request.cost })
      const bucket = bucketOf(request)
      bucket.level = Math.min(request.limit, bucket.level + request.cost)
    },
    remaining: (request) => Math.floor(bucketOf(request).level),
    close: async () => {},
  }
}
