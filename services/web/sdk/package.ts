import type { StartOptions, TidegateClient } from './api.ts'
import { ClientError } from './errors.ts'
import { createRefusedClient } from './refused-client.ts'

export type { FingerprintReady, Handoff, HandoffOptions, TidegateClient } from './api.ts'

/** Options of the npm package, which is not loaded from a server and so needs `endpoint`. */
export type PackageStartOptions = StartOptions & { endpoint: string }

// Loaded by the first call of `start`, so that importing the package has no side effects.
declare function require(file: './start.ts'): { startAt(options: StartOptions): TidegateClient }

/**
 * Starts observing this page. Equal options return the same client until it is destroyed. Never throws: outside of a
 * page, for example on a server, the client's calls reject with `client.no_page`.
 */
export function start(options: PackageStartOptions): TidegateClient {
  if (typeof document === 'undefined') {
    const message = 'start: there is no page here. Call it in the browser, not on a server.'
    return createRefusedClient(new ClientError('client.no_page', message))
  }
  return require('./start.ts').startAt(options)
}
