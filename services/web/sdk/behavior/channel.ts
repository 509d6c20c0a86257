/** Creates a running mean and sample standard deviation (Welford). The deviation is null below two values. */
export function createStats() {
  let count = 0
  let mean = 0
  let squares = 0
  return {
    add(value: number): void {
      const delta = value - mean
      mean += delta / ++count
      squares += delta * (value - mean)
    },
    mean: () => (count > 0 ? round(mean) : null),
    deviation: () => (count > 1 ? round(Math.sqrt(squares / (count - 1))) : null),
  }
}

/** Rounds to three decimals: enough to detect machine-like regularity, and short to send. */
export function round(value: number): number {
  return Math.round(value * 1000) / 1000
}

/**
 * Collects statistics of one kind of input: events, their regularity, and how many were untrusted. `zeros` creates the
 * counters specific to that kind.
 */
export function createChannel<Counts extends object>(zeros: () => Counts) {
  let untrusted = 0
  let events = 0
  let first = 0
  let last = 0
  let intervals = createStats()
  let counts = zeros()
  return {
    get counts(): Counts {
      return counts
    },
    record({ isTrusted, timeStamp }: Event): void {
      if (!isTrusted) untrusted++
      if (events++ > 0) intervals.add(timeStamp - last)
      else first = timeStamp
      last = timeStamp
    },
    /** Returns the statistics since the last call. */
    drain() {
      const summary = {
        events,
        untrusted,
        duration_ms: events > 0 ? round(last - first) : null,
        interval_mean: intervals.mean(),
        interval_std: intervals.deviation(),
        ...counts,
      }
      counts = zeros()
      events = untrusted = 0
      intervals = createStats()
      return summary
    },
  }
}

// Larger than the browser's rounding, smaller than most random differences.
const clockToleranceMs = 0.15

/**
 * Returns a predicate: true if an event is not a whole number of milliseconds after the previous one. X11 stamps real
 * input in whole milliseconds, while the browser stamps synthesized events by its own, finer clock.
 */
export function createOffClock(): (event: Event) => boolean {
  let last: number | undefined
  return ({ isTrusted, timeStamp }) => {
    if (!isTrusted) return false
    const elapsed = timeStamp - (last ?? timeStamp)
    last = timeStamp
    return Math.abs(elapsed - Math.round(elapsed)) > clockToleranceMs
  }
}

export interface Tracker<T> {
  drain(): T
}

export type Listen = <K extends keyof WindowEventMap>(
  types: readonly K[],
  listener: (event: WindowEventMap[K]) => void,
) => void

/** Returns a function that adds window listeners. They run before the page's, never delay events, and never throw. */
export function createListen(signal: AbortSignal): Listen {
  return (types, listener) => {
    for (const type of types) {
      const guarded = (event: WindowEventMap[typeof type]) => {
        try {
          listener(event)
        } catch {
          // Never disturb the page's own handling of the event.
        }
      }
      window.addEventListener(type, guarded, { capture: true, passive: true, signal })
    }
  }
}
