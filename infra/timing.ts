/** Rejects if `work` takes longer than `ms`. The work itself isn't cancelled. */
export async function withTimeout<R>(
  work: Promise<R>,
  ms: number,
  timeoutError = () => new Error(`no response within ${ms} ms`),
): Promise<R> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(timeoutError()), ms)
  })
  try {
    return await Promise.race([work, timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** Caches the result of `load` for `ms`. Concurrent calls share one load, and failures aren't cached. */
export function cachedFor<T>(ms: number, load: () => Promise<T>, clock = () => performance.now()) {
  let cached: { value: T; until: number } | undefined
  let inFlight: Promise<T> | undefined
  async function reload(): Promise<T> {
    const value = await load()
    cached = { value, until: clock() + ms }
    return value
  }
  return async (): Promise<T> => {
    if (cached && clock() < cached.until) return cached.value
    inFlight ??= reload().finally(() => {
      inFlight = undefined
    })
    return inFlight
  }
}

export type YieldToEventLoop = () => Promise<void>

const budgetMs = 20

/**
 * Returns a function to await between the iterations of a long loop. It yields to the event loop if the last yield was
 * 20 ms ago, so other work waits for 20 ms and one iteration at most.
 */
export function createYielder(): YieldToEventLoop {
  let yieldedAt = performance.now()
  return async () => {
    if (performance.now() - yieldedAt < budgetMs) return
    await new Promise((resolve) => setImmediate(resolve))
    yieldedAt = performance.now()
  }
}
