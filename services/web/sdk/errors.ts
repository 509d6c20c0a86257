export interface Errors {
  /** Tells every listener. */
  report(error: unknown): void
  /** Returns how to stop listening. */
  listen(listener: (error: Error) => void): () => void
  /** The same promise; a rejection is reported as well. */
  watch<T>(promise: Promise<T>): Promise<T>
}

/** Tells the page of failures without ever throwing into it. */
export function createErrors(): Errors {
  const listeners = new Set<(error: Error) => void>()

  function report(error: unknown): void {
    for (const listener of listeners) {
      try {
        listener(error instanceof Error ? error : new Error(String(error)))
      } catch (bug) {
        // The listener's own mistake: shown to the page's developer, not to the other listeners.
        reportError(bug)
      }
    }
  }

  return {
    report,
    listen(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    watch(promise) {
      promise.catch(report)
      return promise
    },
  }
}
