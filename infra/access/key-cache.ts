import { lookupHashes, parseApiKey } from '../crypto/api-keys.ts'
import type { Keyring } from '../crypto/keyring.ts'
import { createConcurrencyLimit } from '../flow/limit.ts'
import type { Clock } from '../ids.ts'
import { createLru } from '../lru.ts'
import { type Budget, createBudget, rateLimitError } from './budget.ts'
import type { KeyRecord } from './principal.ts'
import { sourceOf } from './source.ts'

export type LookupOutcome = 'found' | 'unknown' | 'refused'

export interface KeyCacheOptions {
  findKey: (lookupHashes: string[]) => Promise<KeyRecord | undefined>
  keyring: Keyring
  clock: Clock
  cacheMs: number
  /** Lookups of keys that this process has not verified, per source (default 10 per second, burst of 50). */
  sourceBudget?: Budget | undefined
  onKeyLookup?: ((outcome: LookupOutcome) => void) | undefined
}

interface Lookup {
  record: KeyRecord | undefined
  /** Start of the lookup, epoch milliseconds: the record may be that old, however late it arrived. */
  requestedAt: number
}

type PendingLookup = Promise<KeyRecord | undefined>

const maxKeys = 10_000
// Concurrent lookups. Separate limits, so that guessed keys delay only each other.
const maxLookups = { unverified: 4, verified: 4 }
const queueMs = 5000

/**
 * Creates a cache that looks each key up at most once per `cacheMs`. Concurrent requests with one key share a lookup.
 * Keys are cached in plain text, in memory only. Unknown keys are cached separately, so that guesses evict no
 * customer's key. Caching them never delays a new key, because nobody can send a key before it is stored.
 */
export function createKeyCache({ findKey, keyring, clock, cacheMs, ...options }: KeyCacheOptions) {
  const { sourceBudget = createBudget({ clock }), onKeyLookup } = options
  const verified = createLru<string, Lookup>(maxKeys)
  const unknown = createLru<string, Lookup>(maxKeys)
  const pending = new Map<string, PendingLookup>()
  const limit = createConcurrencyLimit({ max: maxLookups.unverified, timeoutMs: queueMs })
  const verifiedLimit = createConcurrencyLimit({ max: maxLookups.verified, timeoutMs: queueMs })

  async function fetchRecord(key: string, isCurrent: () => boolean): PendingLookup {
    const requestedAt = clock()
    const record = await findKey(lookupHashes(keyring, key))
    onKeyLookup?.(record ? 'found' : 'unknown')
    if (isCurrent()) {
      verified.delete(key)
      unknown.delete(key)
      const cache = record ? verified : unknown
      cache.set(key, { record, requestedAt })
    }
    return record
  }

  function startLookup(key: string, { ip }: { readonly ip: string }): PendingLookup {
    // A key that was verified here before is no guess and costs nothing: otherwise customers behind one proxy, whose
    // keys all become stale with the same change, would lock each other out.
    const mayBeGuess = !verified.has(key)
    const source = sourceOf(ip)
    if (mayBeGuess && !sourceBudget.spend(source)) {
      onKeyLookup?.('refused')
      throw rateLimitError()
    }
    const isCurrent = (): boolean => pending.get(key) === lookup
    const record = (mayBeGuess ? limit : verifiedLimit).run([], () => fetchRecord(key, isCurrent))
    // Refunds the lookup unless the key is unknown: neither a restart nor a failed lookup may lock customers out.
    const refund = () => sourceBudget.refund(source)
    if (mayBeGuess) record.then((found) => found && refund(), refund)
    const lookup: PendingLookup = record.finally(() => {
      if (isCurrent()) pending.delete(key)
    })
    pending.set(key, lookup)
    return lookup
  }

  return {
    /** Returns the cached record of a verified key, however old. */
    peek: (key: string): KeyRecord | undefined => verified.peek(key)?.record,
    /**
     * Returns the key's record; undefined if it does not exist. Returns a promise only if it has to look the key up.
     * Throws 429 if the source has sent too many unknown keys.
     */
    find(
      key: string,
      source: { readonly ip: string },
    ): KeyRecord | undefined | Promise<KeyRecord | undefined> {
      const cached = verified.get(key) ?? unknown.get(key)
      if (cached && isFresh(cached, { now: clock(), cacheMs })) return cached.record
      // A malformed key or a wrong checksum costs no lookup.
      if (!parseApiKey(key)) return undefined
      return pending.get(key) ?? startLookup(key, source)
    },
    /**
     * Marks the cached records of these organizations stale (default: of all), and discards the results of lookups
     * that are still pending.
     */
    invalidate(organizationIds?: readonly string[]): void {
      const isChanged = belongsTo(organizationIds)
      for (const key of pending.keys()) {
        const cached = verified.get(key)
        // A key not verified before may belong to a changed organization, so its lookup is discarded too.
        if (!cached || isChanged(cached)) pending.delete(key)
      }
      verified.forEach((cached) => {
        if (isChanged(cached)) cached.requestedAt = Number.NEGATIVE_INFINITY
      })
      if (!organizationIds) unknown.clear()
    },
  }
}

function isFresh({ requestedAt }: Lookup, { now, cacheMs }: { now: number; cacheMs: number }) {
  const age = now - requestedAt
  // A clock that is set back must not extend the cache time.
  return age >= 0 && age < cacheMs
}

function belongsTo(organizationIds: readonly string[] | undefined): (lookup: Lookup) => boolean {
  if (!organizationIds) return () => true
  const ids = new Set(organizationIds)
  return ({ record }) => record !== undefined && ids.has(record.principal.organizationId)
}
