export interface RowWaiterOptions<Id, Row> {
  find: (ids: Id[], found: (id: Id, row: Row) => void) => Promise<unknown>
  /** `ids`: what came, if that is known. Nothing is searched for that did not come. */
  onAdvance: (listener: (ids?: readonly Id[]) => void) => () => void
  /** False: whoever waits comes before its row, so that the first search is at the next notification. Default true. */
  findsAtOnce?: boolean
  /** Milliseconds between searches without a notification (default 250). */
  pollMs?: number | undefined
}

interface RowWait<T> {
  ms: number
  /** The result when the row was not found in time. */
  late: () => Promise<T>
}

export interface RowWaiter<Id, Row> {
  waitFor<T>(id: Id, wait: RowWait<T>): Promise<Row | T>
  close(): void
}

/** Waits for rows of a read model. One search runs at a time, and what comes meanwhile is the next one's. */
export function createRowWaiter<Id, Row>(options: RowWaiterOptions<Id, Row>): RowWaiter<Id, Row> {
  const waiting = new Map<Id, Set<(row: Row) => void>>()
  const toFind = new Set<Id>()
  let isFinding = false

  async function find(ids: Iterable<Id>): Promise<void> {
    for (const id of ids) if (waiting.has(id)) toFind.add(id)
    if (isFinding) return
    isFinding = true
    while (toFind.size > 0) {
      const some = [...toFind]
      toFind.clear()
      try {
        await options.find(some, settle)
      } catch {
        // A failed search is not the end: the next one, or the time-out, decides.
      }
    }
    isFinding = false
  }

  function settle(id: Id, row: Row): void {
    for (const resolve of waiting.get(id) ?? []) resolve(row)
    waiting.delete(id)
  }

  function forget(id: Id, listener: (row: Row) => void): void {
    const listeners = waiting.get(id)
    listeners?.delete(listener)
    if (listeners?.size === 0) waiting.delete(id)
  }

  const stop = options.onAdvance((ids) => void find(ids ?? waiting.keys()))
  const timer = setInterval(() => void find(waiting.keys()), options.pollMs ?? 250)
  timer.unref()

  return {
    waitFor(id, { ms, late }) {
      return new Promise((resolve) => {
        const found = (row: Row) => {
          clearTimeout(timeUp)
          resolve(row)
        }
        const timeUp = setTimeout(() => {
          forget(id, found)
          resolve(late())
        }, ms)
        waiting.set(id, (waiting.get(id) ?? new Set()).add(found))
        if (options.findsAtOnce ?? true) void find([id])
      })
    },
    close() {
      stop()
      clearInterval(timer)
    },
  }
}
