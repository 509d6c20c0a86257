/** Lets the rest of the process run where a loop has had the event loop to itself for long enough. */
export type Breathe = () => Promise<void>

const budgetMs = 20

/**
 * For a loop over many pieces of work that are each short: called between two of them, it yields once they have
 * taken 20 ms together, so that a request waits for that and one piece at most, however many there are.
 */
export function createBreather(): Breathe {
  let since = performance.now()
  return async () => {
    if (performance.now() - since < budgetMs) return
    await new Promise((resolve) => setImmediate(resolve))
    since = performance.now()
  }
}
