import type { StartOptions, TidegateClient } from './api.ts'
import { createClient } from './client.ts'
import { ClientError } from './errors.ts'
import { createRefusedClient } from './refused-client.ts'
import { readOrNull } from './support.ts'

const clients = new Map<string, TidegateClient>()

/**
 * Starts observing this page. The same key and endpoint give the same client until it is destroyed. Never throws:
 * with wrong options the client's calls reject with `client.invalid_options`, and its onError reports it.
 */
export function startAt(options: StartOptions, home?: string): TidegateClient {
  try {
    const { publishableKey, endpoint } = readOptions(options, home)
    const name = `${endpoint} ${publishableKey}`
    const known = clients.get(name)
    if (known) return known
    const client = createClient({ publishableKey, endpoint, onDestroy: () => clients.delete(name) })
    clients.set(name, client)
    return client
  } catch (error) {
    return createRefusedClient(error)
  }
}

// Pages are not type-checked: whatever they pass comes here.
function readOptions(options: StartOptions, home: string | undefined): Required<StartOptions> {
  const { publishableKey, endpoint = home }: Partial<StartOptions> = Object(options)
  if (typeof publishableKey !== 'string' || publishableKey === '') {
    throw new ClientError('client.invalid_options', 'start: publishableKey must be a publishable key.')
  }
  const url = typeof endpoint === 'string' ? readOrNull(() => new URL(endpoint, location.href)) : null
  if (endpoint === undefined || !url || !/^https?:$/.test(url.protocol)) {
    throw new ClientError('client.invalid_options', 'start: endpoint must be the URL of a server.')
  }
  return { publishableKey, endpoint: endpoint.replace(/\/+$/, '') }
}
