import { setImmediate as settled } from 'node:timers/promises'
import { pino } from 'pino'
import type { RateLimitRequest } from '../../../../../infra/access/rate-limit/bucket.ts'
import { createRateLimiter } from '../../../../../infra/access/rate-limit/limiter.ts'
import type { BucketStore } from '../../../../../infra/access/rate-limit/shared-bucket.ts'
import { createRandom } from '../../../../../infra/random.ts'
import { createScriptedStore } from './scripted-store.ts'
import { createVirtualTime } from './virtual-time.ts'

interface Line {
  level: number
  msg: string
}

export interface ToldProcessOptions {
  answerWithinMs?: number
  maxBuckets?: number
  /** What the limiter sees in place of the store. */
  wrap?: (store: BucketStore) => BucketStore
}

/** A process in virtual time with a store that does as it is scripted, and its log. */
export function createScriptedProcess({ answerWithinMs = 5, maxBuckets, wrap }: ToldProcessOptions = {}) {
  const time = createVirtualTime()
  const scripted = createScriptedStore({ clock: time.clock })
  const lines: Line[] = []
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const createLimiter = () =>
    createRateLimiter({
      store: wrap ? wrap(scripted.store) : scripted.store,
      random: createRandom(),
      logger,
      clock: time.clock,
      every: time.every,
      answerWithinMs,
      ...(maxBuckets ? { maxBuckets } : {}),
    })
  const wait = async (ms: number) => {
    await time.runUntil(time.clock() + ms)
    await settled()
  }
  return { ...scripted, clock: time.clock, wait, createLimiter, limiter: createLimiter(), lines }
}

export const requestOf = (name: string, { limit = 600, cost = 1 } = {}): RateLimitRequest => ({
  organizationId: `org_${name}`,
  keyType: 'secret',
  limit,
  cost,
})
