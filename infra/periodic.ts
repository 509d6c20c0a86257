export interface PeriodicOptions {
  /** Milliseconds between the starts of two looks; a look that takes longer delays the next. */
  intervalMs: number
  /** Looks once and does what is due; true = more may be due, look again at once. */
  look: () => Promise<boolean>
  /** Called when a look fails; the next one comes as usual. */
  onError: (error: unknown) => void
}

/** Looks now and every `intervalMs`, one look at a time. `stop` resolves when the running look has ended. */
export function runPeriodically({ intervalMs, look, onError }: PeriodicOptions): { stop(): Promise<void> } {
  let running: Promise<void> | undefined
  let stopping = false
  const lookAll = async () => {
    // After an outage far more than one look's worth may be due.
    while (!stopping && (await look()));
  }
  const tick = () => {
    running ??= lookAll()
      .catch(onError)
      .finally(() => {
        running = undefined
      })
  }
  const timer = setInterval(tick, intervalMs)
  tick()
  return {
    async stop() {
      stopping = true
      clearInterval(timer)
      await running
    },
  }
}
