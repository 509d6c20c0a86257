import type { TidegateClient } from './api.ts'
import { createErrors } from './errors.ts'

/** Returns the client of a failed start. Every call rejects with the reason, and each new listener gets it. */
export function createRefusedClient(reason: unknown): TidegateClient {
  const errors = createErrors()
  return {
    getSession: () => errors.watch(Promise.reject(reason)),
    waitForFingerprint: () => errors.watch(Promise.reject(reason)),
    onError(listener) {
      const stop = errors.listen(listener)
      // Nobody can listen before start() returns, so report the failure to each listener when it is added.
      const listenerErrors = createErrors()
      listenerErrors.listen(listener)
      queueMicrotask(() => listenerErrors.report(reason))
      return stop
    },
    consent() {},
    destroy() {},
  }
}
