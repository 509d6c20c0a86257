import { setTimeout as delay } from 'node:timers/promises'

export interface EventuallyOptions {
  timeoutMs?: number
  intervalMs?: number
}

// Long, because a slow machine is not a failure. Only broken tests wait this long.
const defaultTimeoutMs = 30_000

/** Retries `check` until it passes and returns its result. Throws its last error after the timeout. */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { timeoutMs = defaultTimeoutMs, intervalMs = 20 }: EventuallyOptions = {},
): Promise<T> {
  const end = performance.now() + timeoutMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() > end) throw error
    }
    await delay(intervalMs)
  }
}
