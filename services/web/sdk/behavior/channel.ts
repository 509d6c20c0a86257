/** Mean and deviation of a stream of numbers. The deviation is that of a sample, and null with fewer than two values. */
export function createSpread() {
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

/** To three decimals, which is enough to see machine-like regularity, and short to send. */
export function round(value: number): number {
  return Math.round(value * 1000) / 1000
}

/**
 * One kind of input. What all kinds have in common is how many events there were, how regular they came, and whether the
 * browser made them. `zeros` makes what this kind counts besides.
 */
export function createChannel<Counts extends object>(zeros: () => Counts) {
  let untrusted = 0
  let events = 0
  let first = 0
  let last = 0
  let intervals = createSpread()
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
    /** What there was since the last call. */
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
      intervals = createSpread()
      return summary
    },
  }
}

// Milliseconds; longer than the browser rounds a time by, and shorter than most differences by chance.
const clockTolerance = 0.15

/**
 * Tells whether an event is no whole number of milliseconds after the one before. X11 stamps real input in whole
 * milliseconds, and a browser stamps events that software requests by its own, finer clock.
 */
export function createClock(): (event: Event) => boolean {
  let last: number | undefined
  return ({ isTrusted, timeStamp }) => {
    if (!isTrusted) return false
    const elapsed = timeStamp - (last ?? timeStamp)
    last = timeStamp
    return Math.abs(elapsed - Math.round(elapsed)) > clockTolerance
  }
}

export interface Tracker<T> {
  drain(): T
}

export type Listen = <K extends keyof WindowEventMap>(
  types: readonly K[],
  listener: (event: WindowEventMap[K]) => void,
) => void

/** Listeners on the window that see events before the page, never delay them and never throw into it. */
export function createListen(signal: AbortSignal): Listen {
  return (types, listener) => {
    for (const type of types) {
      const guarded = (event: WindowEventMap[typeof type]) => {
        try {
          listener(event)
        } catch {
          // An observation is worth less than the page's own handling of the event.
        }
      }
      window.addEventListener(type, guarded, { capture: true, passive: true, signal })
    }
  }
}
