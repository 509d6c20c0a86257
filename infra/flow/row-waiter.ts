export interface RowWaiterOptions<Id, Row> {
  /** Looks up the rows, and calls `onFound` for each one that exists. */
  find: (ids: Id[], onFound: (id: Id, row: Row) => void) => Promise<unknown>
  /** Subscribes to notifications of new rows: `ids`, or any if undefined. Returns the function that unsubscribes. */
  onAdvance: (listener: (ids?: readonly Id[]) => void) => () => void
  /**
   * Set to false if callers always start to wait before the row exists: the first search is then at the next
   * notification. Default true.
   */
  searchesImmediately?: boolean
  /** Milliseconds between searches without a notification (default 250). */
  pollMs?: number | undefined
}

interface RowWait<T> {
  timeoutMs: number
  /** Returns the result of `waitFor` if the row did not appear in time. */
  onTimeout: () => Promise<T>
}

export interface RowWaiter<Id, Row> {
  waitFor<T>(id: Id, wait: RowWait<T>): Promise<Row | T>
  close(): void
}

/** Waits for rows to appear in a read model. Searches never overlap: ids requested during one go into the next. */
export function createRowWaiter<Id, Row>(options: RowWaiterOptions<Id, Row>): RowWaiter<Id, Row> {
  const waiters = new Map<Id, Set<(row: Row) => void>>()
  const queue = new Set<Id>()
  let isSearching = false

  async function search(ids: Iterable<Id>): Promise<void> {
    for (const id of ids) if (waiters.has(id)) queue.add(id)
    if (isSearching) return
    isSearching = true
    while (queue.size > 0) {
      const batch = [...queue]
      queue.clear()
      try {
        await options.find(batch, resolveWaiters)
      } catch {
        // The next search retries, until the waiters time out.
      }
    }
    isSearching = false
  }

  function resolveWaiters(id: Id, row: Row): void {
    for (const resolve of waiters.get(id) ?? []) resolve(row)
    waiters.delete(id)
  }

  function removeWaiter(id: Id, waiter: (row: Row) => void): void {
    const waitersOfRow = waiters.get(id)
    waitersOfRow?.delete(waiter)
    if (waitersOfRow?.size === 0) waiters.delete(id)
  }

  const unsubscribe = options.onAdvance((ids) => void search(ids ?? waiters.keys()))
  const timer = setInterval(() => void search(waiters.keys()), options.pollMs ?? 250)
  timer.unref()

  return {
    waitFor(id, { timeoutMs, onTimeout }) {
      return new Promise((resolve) => {
        const waiter = (row: Row) => {
          clearTimeout(timeout)
          resolve(row)
        }
        const timeout = setTimeout(() => {
          removeWaiter(id, waiter)
          resolve(onTimeout())
        }, timeoutMs)
        waiters.set(id, (waiters.get(id) ?? new Set()).add(waiter))
        if (options.searchesImmediately ?? true) void search([id])
      })
    },
    close() {
      unsubscribe()
      clearInterval(timer)
    },
  }
}
