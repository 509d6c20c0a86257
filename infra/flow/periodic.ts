export interface PeriodicOptions {
  intervalMs: number
  /** Minimum time between the starts of two runs. All calls of `wake` in between share one run. */
  minIntervalMs?: number
  /** Resolves to true if more work may be due, to run again at once. */
  work: (() => Promise<boolean>) | (() => Promise<void>)
  onError: (error: unknown) => void
}

export interface Periodic {
  /** Requests a run as soon as possible, or another one after the current run. */
  wake(): void
  /** Starts no further run. Resolves when the current one has ended. */
  stop(): Promise<void>
}

/** Runs the work at once, then `intervalMs` after each run or on `wake`. Runs never overlap. */
export function runPeriodically({
  intervalMs,
  minIntervalMs = 0,
  work,
  onError,
}: PeriodicOptions): Periodic {
  let wakeUp = Promise.withResolvers<void>()
  let isStopping = false

  async function waitForNextRun(startedAt: number): Promise<void> {
    const timer = setTimeout(wakeUp.resolve, intervalMs)
    await wakeUp.promise
    clearTimeout(timer)
    const waitMs = startedAt + minIntervalMs - performance.now()
    if (waitMs > 0 && !isStopping) await new Promise((resolve) => setTimeout(resolve, waitMs))
  }

  async function runUntilStopped(): Promise<void> {
    while (!isStopping) {
      wakeUp = Promise.withResolvers<void>()
      const startedAt = performance.now()
      // After an outage, more may be due than one run does.
      const hasMore = await work().catch(onError)
      if (!hasMore) await waitForNextRun(startedAt)
    }
  }

  const running = runUntilStopped()
  return {
    wake: () => wakeUp.resolve(),
    async stop() {
      isStopping = true
      wakeUp.resolve()
      await running
    },
  }
}
