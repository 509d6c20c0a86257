import { setTimeout as delay } from 'node:timers/promises'

export interface EventuallyOptions {
  timeoutMs?: number
  intervalMs?: number
}

// Long, because a slow machine is no failure: only what is broken waits for it.
const defaultTimeoutMs = 30_000

/** Retries `check` until it passes and returns what it returned; throws its last error when the time is up. */
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
