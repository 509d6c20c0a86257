import type { StartOptions, TidegateClient } from './api.ts'
import { ClientError } from './errors.ts'
import { createRefusedClient } from './refused-client.ts'

export type { FingerprintReady, Handoff, HandoffOptions, TidegateClient } from './api.ts'

/** The npm package does not come from a server, so the server has to be named. */
export type PackageStartOptions = StartOptions & { endpoint: string }

// The module is evaluated by the first call of `start`. Importing the package then does nothing, also on a server.
declare function require(file: './start.ts'): { startAt(options: StartOptions): TidegateClient }

/**
 * Starts observing this page. The same options give the same client until it is destroyed. Never throws: where there
 * is no page, as on a server, the client's calls reject with `client.no_page`.
 */
export function start(options: PackageStartOptions): TidegateClient {
  if (typeof document === 'undefined') {
    const message = 'start: there is no page here, as on a server. Call it in the browser.'
    return createRefusedClient(new ClientError('client.no_page', message))
  }
  return require('./start.ts').startAt(options)
}
