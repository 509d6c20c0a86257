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
  async function attemptOnce(): Promise<T> {
    const value = await attempt()
    last = { value, until: clock() + ms }
    return value
  }
  return async (): Promise<T> => {
    if (last && clock() < last.until) return last.value
    underWay ??= attemptOnce().finally(() => {
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
