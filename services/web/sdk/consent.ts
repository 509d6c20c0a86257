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
 * A client that begins with consent and stops when that is withdrawn. Without it every call rejects with
 * `client.no_consent`. Throws what `begin` throws, if there is consent.
 */
export function createConsentedClient({
  hasConsent,
  begin,
  forget,
  onDestroy,
}: ConsentOptions): TidegateClient {
  const errors = createErrors()
  let isDestroyed = false
  let refusal: unknown = noConsentError()
  let running = hasConsent ? begin(errors) : undefined

  function grant(): void {
    try {
      running ??= begin(errors)
    } catch (error) {
      refusal = error
      errors.report(error)
    }
  }

  function withdraw(): void {
    refusal = noConsentError()
    running?.stop(noConsentError())
    running = undefined
    forget()
  }

  const use = <T>(call: (client: RunningClient) => Promise<T>): Promise<T> =>
    running ? call(running) : errors.watch(Promise.reject(isDestroyed ? destroyedError() : refusal))

  return {
    getSession: (options) => use((client) => client.getSession(options)),
    waitForFingerprint: () => use((client) => client.waitForFingerprint()),
    onError: errors.listen,
    consent(value) {
      if (isDestroyed) return
      // Pages are not type-checked: a text such as 'false' is no consent.
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
