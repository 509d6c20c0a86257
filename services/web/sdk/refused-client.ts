import type { TidegateClient } from './api.ts'
import { createErrors } from './errors.ts'

/** Stands in for a client that could not start: every call rejects, and each new listener hears why. */
export function createRefusedClient(reason: unknown): TidegateClient {
  const errors = createErrors()
  return {
    getSession: () => errors.watch(Promise.reject(reason)),
    waitForFingerprint: () => errors.watch(Promise.reject(reason)),
    onError(listener) {
      const stop = errors.listen(listener)
      // Nobody can listen before start() has returned, so the failure waits for whoever does.
      const alone = createErrors()
      alone.listen(listener)
      queueMicrotask(() => alone.report(reason))
      return stop
    },
    consent() {},
    destroy() {},
  }
}
