export interface PeriodicOptions {
  intervalMs: number
  /** Between the beginnings of two runs, at least; one run serves all who woke it meanwhile. */
  gapMs?: number
  /** Does what is due; true = more may be due, run again at once. */
  work: () => Promise<boolean>
  onError: (error: unknown) => void
}

export interface Periodic {
  /** Runs soon, also when a run is under way. */
  wake(): void
  /** No run begins any more; resolves when the one under way has ended. */
  stop(): Promise<void>
}

/** Runs the work at once, then `intervalMs` after each run or when it is woken; one run at a time. */
export function runPeriodically({
  intervalMs,
  gapMs = 0,
  work,
  onError,
}: PeriodicOptions): Periodic {
  let bell = Promise.withResolvers<void>()
  let isStopping = false

  async function rest(begunAt: number): Promise<void> {
    const timer = setTimeout(bell.resolve, intervalMs)
    await bell.promise
    clearTimeout(timer)
    const gapLeft = begunAt + gapMs - performance.now()
    if (gapLeft > 0 && !isStopping) await new Promise((resolve) => setTimeout(resolve, gapLeft))
  }

  async function workOn(): Promise<void> {
    while (!isStopping) {
      bell = Promise.withResolvers<void>()
      const begunAt = performance.now()
      // After an outage far more than one run's worth may be due.
      const hasMore = await work().catch(onError)
      if (!hasMore) await rest(begunAt)
    }
  }

  const working = workOn()
  return {
    wake: () => bell.resolve(),
    async stop() {
      isStopping = true
      bell.resolve()
      await working
    },
  }
}
