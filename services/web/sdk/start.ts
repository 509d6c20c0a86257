import type { StartOptions, TidegateClient } from './api.ts'
import { createClient } from './client.ts'
import { createConsentedClient } from './consent.ts'
import { deleteStoredData } from './continuity.ts'
import { ClientError } from './errors.ts'
import { createRefusedClient } from './refused-client.ts'
import { tryOrNull } from './support.ts'

const maxWaitMs = 5000

const clients = new Map<string, TidegateClient>()

/**
 * Starts observing this page, or waits for consent. The same key and endpoint return the same client until it is
 * destroyed. Never throws: with invalid options, the client's calls reject with `client.invalid_options`.
 */
export function startAt(options: StartOptions, defaultEndpoint?: string): TidegateClient {
  try {
    const { consent, ...settings } = readOptions(options, defaultEndpoint)
    const name = `${settings.endpoint} ${settings.publishableKey}`
    const existing = clients.get(name)
    if (existing) return existing
    const client = createConsentedClient({
      hasConsent: consent === 'granted',
      begin: (errors) => createClient(settings, errors),
      forget: () => deleteStoredData(settings.publishableKey),
      onDestroy: () => clients.delete(name),
    })
    clients.set(name, client)
    return client
  } catch (error) {
    return createRefusedClient(error)
  }
}

// Validates everything, because pages are not type-checked.
function readOptions(
  options: StartOptions,
  defaultEndpoint: string | undefined,
): Required<StartOptions> {
  const passed: Partial<StartOptions> = Object(options)
  const {
    publishableKey,
    endpoint = defaultEndpoint,
    consent = 'granted',
    mode = 'full',
    waitMs = maxWaitMs,
  } = passed
  if (typeof publishableKey !== 'string' || publishableKey === '')
    throw invalid('publishableKey must be a publishable key (pk_live_… or pk_test_…).')
  const url =
    typeof endpoint === 'string' ? tryOrNull(() => new URL(endpoint, location.href)) : null
  if (endpoint === undefined || !url || !/^https?:$/.test(url.protocol))
    throw invalid('endpoint must be the URL of a server.')
  // A misspelled 'pending' must not count as 'granted'.
  if (consent !== 'granted' && consent !== 'pending')
    throw invalid("consent must be 'granted' or 'pending'.")
  if (mode !== 'full' && mode !== 'minimal') throw invalid("mode must be 'full' or 'minimal'.")
  if (typeof waitMs !== 'number' || !(waitMs >= 0))
    throw invalid('waitMs must be a number of milliseconds.')
  return {
    publishableKey,
    waitMs: Math.min(waitMs, maxWaitMs),
    endpoint: endpoint.replace(/\/+$/, ''),
    consent,
    mode,
  }
}

function invalid(problem: string): ClientError {
  return new ClientError('client.invalid_options', `start: ${problem}`)
}
