export interface OnDemandOptions {
  /** Milliseconds from the start of one run to the start of the next at least. */
  gapMs: number
  /** Does what there is to do; returns after how many milliseconds it runs again at the latest. */
  work: () => Promise<number>
}

export interface OnDemand {
  /** Runs the work within so many milliseconds (default 0) or the gap; calls until then are one. */
  wake(withinMs?: number): void
  /** No run begins any more; resolves when the running one has ended. */
  stop(): Promise<void>
}

/** Runs `work` whenever it is asked for and every now and then, one run at a time. `work` must not reject. */
export function runOnDemand({ gapMs, work }: OnDemandOptions): OnDemand {
  let timer: NodeJS.Timeout | undefined
  let dueAt = Infinity
  let startedAt = -Infinity
  let running: Promise<void> | undefined
  let wantedWithin = Infinity
  let isStopping = false

  function schedule(ms: number): void {
    const at = performance.now() + ms
    if (isStopping || dueAt <= at) return
    clearTimeout(timer)
    dueAt = at
    timer = setTimeout(begin, ms)
  }

  function begin(): void {
    dueAt = Infinity
    wantedWithin = Infinity
    startedAt = performance.now()
    running = run()
  }

  async function run(): Promise<void> {
    const ms = await work()
    running = undefined
    schedule(ms)
    if (wantedWithin < Infinity) wake(wantedWithin)
  }

  function wake(withinMs = 0): void {
    if (running) wantedWithin = Math.min(wantedWithin, withinMs)
    else schedule(Math.max(withinMs, startedAt + gapMs - performance.now()))
  }

  schedule(0)
  return {
    wake,
    async stop() {
      isStopping = true
      clearTimeout(timer)
      await running
    },
  }
}
