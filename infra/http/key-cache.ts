import { LRUCache } from 'lru-cache'
import { lookupHashes, parseApiKey } from '../crypto/api-keys.ts'
import type { Keyring } from '../crypto/keyring.ts'
import type { Clock } from '../ids.ts'
import type { KeyRecord } from './principal.ts'

export interface KeyCacheOptions {
  findKey: (lookupHashes: string[]) => Promise<KeyRecord | undefined>
  keyring: Keyring
  clock: Clock
  /** How long a key that was found is believed without asking again. */
  cacheMs: number
}

interface Entry {
  record: KeyRecord
  expiresAt: number
}

const maxKeys = 10_000

/**
 * Finds keys, each at most once per `cacheMs`; concurrent requests with one key share a look-up. Only keys that
 * were found are kept, so that guesses neither fill the cache nor delay a new key. They are kept as they are, not
 * hashed, and in memory alone.
 */
export function createKeyCache({ findKey, keyring, clock, cacheMs }: KeyCacheOptions) {
  const known = new LRUCache<string, Entry>({ max: maxKeys })
  const running = new Map<string, Promise<KeyRecord | undefined>>()

  async function lookUp(key: string): Promise<KeyRecord | undefined> {
    // Counted from before the question: the answer may be as old as that.
    const expiresAt = clock() + cacheMs
    const record = await findKey(lookupHashes(keyring, key))
    if (record) known.set(key, { record, expiresAt })
    return record
  }

  return (key: string): KeyRecord | undefined | Promise<KeyRecord | undefined> => {
    const entry = known.get(key)
    if (entry && clock() < entry.expiresAt) return entry.record
    known.delete(key)
    // What is not even a key, by its form and checksum, costs no look-up.
    if (!parseApiKey(key)) return undefined
    const shared = running.get(key) ?? lookUp(key).finally(() => running.delete(key))
    running.set(key, shared)
    return shared
  }
}
