import type { TidegateClient } from './api.ts'
import { createErrors } from './errors.ts'

/** Returns a client for a failed start: every call rejects, and each new listener is called with the reason. */
export function createRefusedClient(reason: unknown): TidegateClient {
  const errors = createErrors()
  return {
    getSession: () => errors.watch(Promise.reject(reason)),
    waitForFingerprint: () => errors.watch(Promise.reject(reason)),
    onError(listener) {
      const stop = errors.listen(listener)
      // Nobody can listen before start() returns, so report the failure to each listener when it is added.
      const ofListener = createErrors()
      ofListener.listen(listener)
      queueMicrotask(() => ofListener.report(reason))
      return stop
    },
    consent() {},
    destroy() {},
  }
}
