import { setImmediate as settled } from 'node:timers/promises'
import {
  createRateLimiter,
  type RateLimiter,
  type RateLimitRequest,
  type RateLimitResult,
} from '../../../../../infra/access/rate-limit/limiter.ts'
import { createMemoryStore } from './memory-store.ts'
import { createVirtualTime } from './virtual-time.ts'

export interface ProcessesOptions {
  count?: number
  maxBuckets?: number
  travel?: (ms: (ms: number) => Promise<void>) => Promise<void>
}

/** Processes with one store in virtual time. However slow this machine is, nothing is late by itself. */
export function createProcesses({ count = 1, travel, maxBuckets }: ProcessesOptions = {}) {
  const time = createVirtualTime()
  const shared = createMemoryStore({
    clock: time.clock,
    ...(travel ? { travel: () => travel(time.after) } : {}),
  })
  const limiters = Array.from({ length: count }, () =>
    createRateLimiter({
      store: shared.store,
      clock: time.clock,
      every: time.every,
      ...(maxBuckets ? { maxBuckets } : {}),
    }),
  )
  const [limiter] = limiters
  if (!limiter) throw new Error('no process')
  const wait = async (ms: number) => {
    await time.runUntil(time.clock() + ms)
    await settled()
  }
  return { ...shared, time, wait, limiter, limiters }
}

export const requestOf = (name: string, { limit = 600, cost = 1 } = {}): RateLimitRequest => ({
  owner: `org_${name}`,
  bucket: 'secret',
  limit,
  cost,
})

export async function takeMany(
  limiter: RateLimiter | undefined,
  count: number,
  request = requestOf('0'),
): Promise<RateLimitResult[]> {
  const all = []
  for (let i = 0; i < count; i++) if (limiter) all.push(await limiter.consume(request))
  return all
}

export const admittedOf = (all: RateLimitResult[]) => all.filter(({ admitted }) => admitted).length
