export interface PeriodicOptions {
  intervalMs: number
  /** Between the beginnings of two looks, at least; one look serves all who woke it meanwhile. */
  gapMs?: number
  /** Does what is due; true = more may be due, look again at once. */
  look: () => Promise<boolean>
  onError: (error: unknown) => void
}

export interface Periodic {
  /** Looks soon, also when a look is running. */
  wake(): void
  /** No look begins any more; resolves when the running one has ended. */
  stop(): Promise<void>
}

/** Looks at once, then `intervalMs` after each look or when it is woken; one look at a time. */
export function runPeriodically({ intervalMs, gapMs = 0, look, onError }: PeriodicOptions): Periodic {
  let bell = Promise.withResolvers<void>()
  let isStopping = false

  async function rest(begunAt: number): Promise<void> {
    const timer = setTimeout(bell.resolve, intervalMs)
    await bell.promise
    clearTimeout(timer)
    const gapLeft = begunAt + gapMs - performance.now()
    if (gapLeft > 0 && !isStopping) await new Promise((resolve) => setTimeout(resolve, gapLeft))
  }

  async function lookOn(): Promise<void> {
    while (!isStopping) {
      bell = Promise.withResolvers<void>()
      const begunAt = performance.now()
      // After an outage far more than one look's worth may be due.
      const hasMore = await look().catch(onError)
      if (!hasMore) await rest(begunAt)
    }
  }

  const looking = lookOn()
  return {
    wake: () => bell.resolve(),
    async stop() {
      isStopping = true
      bell.resolve()
      await looking
    },
  }
}
