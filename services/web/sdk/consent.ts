import type { TidegateClient } from './api.ts'
import type { RunningClient } from './client.ts'
import { createErrors, destroyedError, type Errors, noConsentError } from './errors.ts'

interface ConsentOptions {
  hasConsent: boolean
  begin(errors: Errors): RunningClient
  forget(): void
  onDestroy(): void
}

/**
 * Returns a client that starts on consent and stops when consent is withdrawn. Without consent, every call rejects with
 * `client.no_consent`. Throws what `begin` throws if consent is given from the start.
 */
export function createConsentedClient({
  hasConsent,
  begin,
  forget,
  onDestroy,
}: ConsentOptions): TidegateClient {
  const errors = createErrors()
  let isDestroyed = false
  let reason: unknown = noConsentError()
  let running = hasConsent ? begin(errors) : undefined

  function grant(): void {
    try {
      running ??= begin(errors)
    } catch (error) {
      reason = error
      errors.report(error)
    }
  }

  function withdraw(): void {
    reason = noConsentError()
    running?.stop(noConsentError())
    running = undefined
    forget()
  }

  const withRunning = <T>(call: (client: RunningClient) => Promise<T>): Promise<T> =>
    running ? call(running) : errors.watch(Promise.reject(isDestroyed ? destroyedError() : reason))

  return {
    getSession: (options) => withRunning((client) => client.getSession(options)),
    waitForFingerprint: () => withRunning((client) => client.waitForFingerprint()),
    onError: errors.listen,
    consent(value) {
      if (isDestroyed) return
      // Pages are not type-checked, and a string such as 'false' must not count as consent.
      if (value === true) grant()
      else withdraw()
    },
    destroy() {
      if (isDestroyed) return
      isDestroyed = true
      running?.stop(destroyedError())
      onDestroy()
    },
  }
}
