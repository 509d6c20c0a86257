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

/** What succeeded is not tried again for so long, a failure at once; one try at a time, which all who ask share. */
export function seldom<T>(ms: number, attempt: () => Promise<T>, clock = () => performance.now()) {
  let last: { value: T; until: number } | undefined
  let underWay: Promise<T> | undefined
  async function look(): Promise<T> {
    const value = await attempt()
    last = { value, until: clock() + ms }
    return value
  }
  return async (): Promise<T> => {
    if (last && clock() < last.until) return last.value
    underWay ??= look().finally(() => {
      underWay = undefined
    })
    return underWay
  }
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
