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

export type Pacer = ReturnType<typeof createPacer>

const windowMs = 60_000
// What is left to others who use the same bucket, as a part of it.
const reserve = 0.01

/**
 * Keeps requests below the server's limit as its X-RateLimit-* headers say it, and silent for as long as a 429 says.
 * A denied request costs units as well, so that clients that only try again starve themselves. Therefore the first
 * request goes by itself, and once little is left the next one goes when the bucket has got a unit for it.
 */
export function createPacer(
  { now, wait }: PacerTime = { now: () => performance.now(), wait: delay },
) {
  const waits: Waits = { denied: 0, overloaded: 0, held: 0, waitedMs: 0 }
  const { promise: firstIsOver, resolve: endFirst } = Promise.withResolvers<void>()
  let first: Promise<void> | undefined
  let line = Promise.resolve()
  let limit = Number.POSITIVE_INFINITY
  let units = Number.POSITIVE_INFINITY
  let underWay = 0
  // No request is sent before.
  let dueAt = Number.NEGATIVE_INFINITY
  const holdFor = (ms: number) => {
    dueAt = Math.max(dueAt, now() + ms)
  }
  const holdIfSpent = () => {
    if (units < 1 + limit * reserve) holdFor(windowMs / limit)
  }

  async function pass(): Promise<void> {
    await first
    first ??= firstIsOver
    const since = now()
    if (dueAt > since) waits.held++
    while (dueAt > now()) await wait(Math.ceil(dueAt - now()))
    waits.waitedMs += now() - since
    underWay++
    units--
    holdIfSpent()
  }

  function over(): void {
    underWay--
    endFirst()
  }

  return {
    /** Resolves when a request may be sent; call `answered` or `lost` once it is over. */
    turn(): Promise<void> {
      line = line.then(pass)
      return line
    },
    answered({
      status,
      headers,
    }: {
      status: number
      headers: { get(name: string): string | null }
    }): void {
      over()
      const stated = Number(headers.get('x-ratelimit-limit'))
      if (stated > 0) {
        limit = stated
        // The server may not have counted those under way.
        units = Number(headers.get('x-ratelimit-remaining')) - underWay
        holdIfSpent()
      }
      if (status !== 429) return
      waits.denied++
      holdFor((Number(headers.get('retry-after')) || 1) * 1000)
    },
    lost: over,
    /** Waits for as long as a 503 says. Other requests go on: a server that sheds new sessions serves those it has. */
    overloaded(retryAfterSeconds: number): Promise<unknown> {
      waits.overloaded++
      return wait(retryAfterSeconds * 1000)
    },
    waits: (): Waits => ({ ...waits, waitedMs: Math.round(waits.waitedMs) }),
  }
}
