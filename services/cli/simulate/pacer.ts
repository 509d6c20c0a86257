import { setTimeout as delay } from 'node:timers/promises'

export interface PacerTime {
  now(): number
  wait(ms: number): Promise<unknown>
}

export interface Waits {
  /** Responses with status 429. */
  denied: number
  /** Responses with status 503 and a Retry-After, which an overloaded server sends. */
  overloaded: number
  /** Requests delayed until the rate limit allowed them. */
  held: number
  waitedMs: number
}

export type Pacer = ReturnType<typeof createPacer>

const windowMs = 60_000
// Share of the limit left to other clients with the same key.
const reserve = 0.01

/**
 * Creates a client-side rate limiter: it keeps requests below the limit in the server's X-RateLimit-* headers and pauses
 * after a 429 for its Retry-After. The first request is sent alone, to learn the limit. Once few units are left, each
 * request waits for a refill, because the server charges denied requests too.
 */
export function createPacer(
  { now, wait }: PacerTime = { now: () => performance.now(), wait: delay },
) {
  const waits: Waits = { denied: 0, overloaded: 0, held: 0, waitedMs: 0 }
  const { promise: firstEnded, resolve: endFirst } = Promise.withResolvers<void>()
  let first: Promise<void> | undefined
  let queue = Promise.resolve()
  let limit = Number.POSITIVE_INFINITY
  let units = Number.POSITIVE_INFINITY
  let inFlight = 0
  // Earliest time of the next request.
  let nextAt = Number.NEGATIVE_INFINITY
  const pauseFor = (ms: number) => {
    nextAt = Math.max(nextAt, now() + ms)
  }
  const pauseIfSpent = () => {
    if (units < 1 + limit * reserve) pauseFor(windowMs / limit)
  }

  async function admit(): Promise<void> {
    await first
    first ??= firstEnded
    const start = now()
    if (nextAt > start) waits.held++
    while (nextAt > now()) await wait(Math.ceil(nextAt - now()))
    waits.waitedMs += now() - start
    inFlight++
    units--
    pauseIfSpent()
  }

  function end(): void {
    inFlight--
    endFirst()
  }

  return {
    /** Resolves when a request may be sent. Call `onResponse` or `onFailure` when it has ended. */
    waitForTurn(): Promise<void> {
      queue = queue.then(admit)
      return queue
    },
    onResponse({
      status,
      headers,
    }: {
      status: number
      headers: { get(name: string): string | null }
    }): void {
      end()
      const serverLimit = Number(headers.get('x-ratelimit-limit'))
      if (serverLimit > 0) {
        limit = serverLimit
        // The server may not have counted the requests in flight.
        units = Number(headers.get('x-ratelimit-remaining')) - inFlight
        pauseIfSpent()
      }
      if (status !== 429) return
      waits.denied++
      pauseFor((Number(headers.get('retry-after')) || 1) * 1000)
    },
    onFailure: end,
    /** Waits for the Retry-After of a 503. Others continue: a server that rejects new sessions serves open ones. */
    waitForRecovery(retryAfterSeconds: number): Promise<unknown> {
      waits.overloaded++
      return wait(retryAfterSeconds * 1000)
    },
    waits: (): Waits => ({ ...waits, waitedMs: Math.round(waits.waitedMs) }),
  }
}
