export interface PeriodicOptions {
  intervalMs: number
  /** Does what is due; true = more may be due, look again at once. */
  look: () => Promise<boolean>
  onError: (error: unknown) => void
}

/** Looks at once and then every `intervalMs`, one look at a time. `stop` resolves when the running look has ended. */
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

/** Rejects when `work` takes longer than `ms`. The work itself goes on. */
export async function within<R>(
  work: Promise<R>,
  ms: number,
  late = () => new Error(`no answer within ${ms} ms`),
): Promise<R> {
  let timer: NodeJS.Timeout | undefined
  const timeUp = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms)
  })
  try {
    return await Promise.race([work, timeUp])
  } finally {
    clearTimeout(timer)
  }
}

const slices = 5

/**
 * Whether `work` settles within about `ms`. Resolves no later, but for the time in which this process itself stood
 * still. A process that stalls finds its timers due before it has read the answers that came meanwhile. So the time is
 * counted in slices, of which a stall uses up only one.
 */
export function settlesWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    let left = slices
    let timer = setTimeout(tick, ms / slices)
    function tick() {
      left--
      if (left > 0) timer = setTimeout(tick, ms / slices)
      else setImmediate(() => resolve(false))
    }
    const finish = () => {
      clearTimeout(timer)
      resolve(true)
    }
    work.then(finish, finish)
  })
}

export type Breathe = () => Promise<void>

const budgetMs = 20

/**
 * For a loop over many short pieces of work, called between two of them. It yields once they have taken 20 ms
 * together, so that a request waits for that and one piece at most.
 */
export function createBreather(): Breathe {
  let since = performance.now()
  return async () => {
    if (performance.now() - since < budgetMs) return
    await new Promise((resolve) => setImmediate(resolve))
    since = performance.now()
  }
}
