import type { StartOptions, TidegateClient } from './api.ts'
import { createClient } from './client.ts'
import { createConsentedClient } from './consent.ts'
import { forgetBrowser } from './continuity.ts'
import { ClientError } from './errors.ts'
import { createRefusedClient } from './refused-client.ts'
import { readOrNull } from './support.ts'

const mostWaitMs = 5000

const clients = new Map<string, TidegateClient>()

/**
 * Starts observing this page, or waits for consent. The same key and endpoint give the same client until it is
 * destroyed. Never throws: with wrong options the client's calls reject with `client.invalid_options`, and its onError
 * reports it.
 */
export function startAt(options: StartOptions, home?: string): TidegateClient {
  try {
    const { consent, ...read } = readOptions(options, home)
    const name = `${read.endpoint} ${read.publishableKey}`
    const known = clients.get(name)
    if (known) return known
    const client = createConsentedClient({
      hasConsent: consent === 'granted',
      begin: (errors) => createClient(read, errors),
      forget: () => forgetBrowser(read.publishableKey),
      onDestroy: () => clients.delete(name),
    })
    clients.set(name, client)
    return client
  } catch (error) {
    return createRefusedClient(error)
  }
}

// Pages are not type-checked: whatever they pass comes here.
function readOptions(options: StartOptions, home: string | undefined): Required<StartOptions> {
  const passed: Partial<StartOptions> = Object(options)
  const {
    publishableKey,
    endpoint = home,
    consent = 'granted',
    mode = 'full',
    waitMs = mostWaitMs,
  } = passed
  if (typeof publishableKey !== 'string' || publishableKey === '')
    throw invalid('publishableKey must be a publishable key.')
  const url =
    typeof endpoint === 'string' ? readOrNull(() => new URL(endpoint, location.href)) : null
  if (endpoint === undefined || !url || !/^https?:$/.test(url.protocol))
    throw invalid('endpoint must be the URL of a server.')
  // A misspelt 'pending' must not start what was to wait.
  if (consent !== 'granted' && consent !== 'pending')
    throw invalid("consent must be 'granted' or 'pending'.")
  if (mode !== 'full' && mode !== 'minimal') throw invalid("mode must be 'full' or 'minimal'.")
  if (typeof waitMs !== 'number' || !(waitMs >= 0))
    throw invalid('waitMs must be a number of milliseconds.')
  return {
    publishableKey,
    waitMs: Math.min(waitMs, mostWaitMs),
    endpoint: endpoint.replace(/\/+$/, ''),
    consent,
    mode,
  }
}

function invalid(problem: string): ClientError {
  return new ClientError('client.invalid_options', `start: ${problem}`)
}
