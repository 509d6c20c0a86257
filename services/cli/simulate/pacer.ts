import { setTimeout as delay } from 'node:timers/promises'

export interface PacerTime {
  now(): number
  wait(ms: number): Promise<unknown>
}

export interface Waits {
  /** Answers with 429. */
  denied: number
  /** Answers with 503 and a Retry-After: the server was overloaded for a moment. */
  overloaded: number
  /** Requests kept back until the bucket would take them. */
  held: number
  waitedMs: number
}

export interface Pacer {
  /** Resolves when a request may be sent; call `answered` or `lost` once it is over. */
  turn(): Promise<void>
  answered(answer: RateLimited): void
  lost(): void
  /** Waits for as long as a 503 asks for. Other requests go on: a server that sheds new sessions serves those it has. */
  overloaded(retryAfterSeconds: number): Promise<unknown>
  waits(): Waits
}

interface RateLimited {
  status: number
  headers: { get(name: string): string | null }
}

interface Bucket {
  limit: number
  units: number
  at: number
}

const windowMs = 60_000
// The least that is left of a bucket, as a part of it: others may use it too, and answers tell of it late.
const reserve = 0.01
// An answer that comes meanwhile may allow more, or less.
const longestNapMs = 250

/**
 * Keeps requests below the server's limit as its X-RateLimit-* headers tell it, and silent for as long as a 429 says.
 * A request that is denied costs units as well, so clients that only try again starve themselves. Every request under
 * way is taken for one that the server has not counted yet, which errs on the polite side. The first goes alone.
 */
export function createPacer({ now, wait }: PacerTime = { now: () => performance.now(), wait: delay }): Pacer {
  const waits: Waits = { denied: 0, overloaded: 0, held: 0, waitedMs: 0 }
  const { promise: firstIsOver, resolve: endFirst } = Promise.withResolvers<void>()
  let bucket: Bucket | undefined
  let silentUntil = Number.NEGATIVE_INFINITY
  let underWay = 0
  let started = false
  let line = Promise.resolve()

  function dueInMs(): number {
    const silent = silentUntil - now()
    if (!bucket) return silent
    const { limit } = bucket
    const missing = Math.min(limit, 1 + limit * reserve) - unitsOf(bucket, now())
    return Math.max(silent, (missing * windowMs) / limit)
  }

  async function pass(): Promise<void> {
    if (started) await firstIsOver
    started = true
    const since = now()
    let held = false
    for (let ms = dueInMs(); ms > 0; ms = dueInMs()) {
      held = true
      await wait(Math.min(Math.ceil(ms), longestNapMs))
    }
    if (held) {
      waits.held++
      waits.waitedMs += now() - since
    }
    underWay++
    if (bucket) bucket.units--
  }

  function over(): void {
    underWay--
    endFirst()
  }

  function denied(headers: RateLimited['headers']): void {
    waits.denied++
    const seconds = Number(headers.get('retry-after')) || 1
    silentUntil = Math.max(silentUntil, now() + seconds * 1000)
    // What Retry-After promises: then there is enough for one request.
    if (bucket) bucket = { ...bucket, units: 1, at: silentUntil }
  }

  return {
    turn() {
      line = line.then(pass)
      return line
    },
    answered({ status, headers }) {
      over()
      const told = readBucket(headers, { now: now(), underWay })
      // Answers from before a 429 do not know of what it found.
      if (now() >= silentUntil) bucket = told ?? bucket
      if (status === 429) denied(headers)
    },
    lost: over,
    overloaded(retryAfterSeconds) {
      waits.overloaded++
      return wait(retryAfterSeconds * 1000)
    },
    waits: () => ({ ...waits, waitedMs: Math.round(waits.waitedMs) }),
  }
}

function unitsOf({ limit, units, at }: Bucket, now: number): number {
  return Math.min(limit, units + (Math.max(0, now - at) * limit) / windowMs)
}

// undefined where the server does not limit, or the answer came from before it knew the key.
function readBucket(
  headers: RateLimited['headers'],
  { now, underWay }: { now: number; underWay: number },
): Bucket | undefined {
  const limit = Number(headers.get('x-ratelimit-limit'))
  const remaining = headers.get('x-ratelimit-remaining')
  if (!(limit > 0) || remaining === null) return undefined
  return { limit, units: Number(remaining) - underWay, at: now }
}
