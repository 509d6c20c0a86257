import { createClient, type TidegateClient } from './client.ts'

export type { FingerprintReady, Handoff, TidegateClient } from './client.ts'

export interface StartOptions {
  /** `pk_live_...` or `pk_test_...`; never a secret key. */
  publishableKey: string
  /** Base URL of the server; default: where this script came from. */
  endpoint?: string
}

const clients = new Map<string, TidegateClient>()

/** Starts observing this page. The same key and endpoint give the same client until it is destroyed. */
export function start({ publishableKey, endpoint }: StartOptions): TidegateClient {
  const base = (endpoint ?? new URL(import.meta.url).origin).replace(/\/+$/, '')
  const name = `${base} ${publishableKey}`
  const known = clients.get(name)
  if (known) return known
  const client = createClient({ publishableKey, endpoint: base, onDestroy: () => clients.delete(name) })
  clients.set(name, client)
  return client
}
