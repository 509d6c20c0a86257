import { LRUCache } from 'lru-cache'
import { lookupHashes, parseApiKey } from '../crypto/api-keys.ts'
import type { Keyring } from '../crypto/keyring.ts'
import { ApiError } from '../errors/errors.ts'
import { createConcurrencyLimit } from '../event-store/decide.ts'
import type { Clock } from '../ids.ts'
import type { KeyRecord } from './principal.ts'
import { createSourceBudget, type SourceBudget } from './source-budget.ts'

export type LookupOutcome = 'found' | 'unknown' | 'refused'

export interface KeyCacheOptions {
  findKey: (lookupHashes: string[]) => Promise<KeyRecord | undefined>
  keyring: Keyring
  clock: Clock
  cacheMs: number
  /** Look-ups of keys that are new here, by source (default 10 a second, 50 at once). */
  sourceBudget?: SourceBudget | undefined
  onKeyLookup?: ((outcome: LookupOutcome) => void) | undefined
}

/** The answer may be as old as its question, however late it came. */
interface Asked {
  at: number
  changes: number
}

interface Known extends Asked {
  record: KeyRecord
}

const maxKeys = 10_000
// Together a fraction of the connections: guesses wait for each other, and never for long before a customer's key.
const lookupsAtOnce = { first: 4, again: 4 }
const turnTimeoutMs = 5000

/**
 * Looks each key up at most once per `cacheMs`. Concurrent requests with one key share a look-up. Keys are kept as
 * they are, not hashed, and in memory alone. Keys that do not exist are kept apart, so that guesses push out no
 * customer's key. That delays no new key: nobody knows a random key before it is readable.
 */
export function createKeyCache({ findKey, keyring, clock, cacheMs, ...options }: KeyCacheOptions) {
  const { sourceBudget = createSourceBudget({ clock }), onKeyLookup } = options
  const known = new LRUCache<string, Known>({ max: maxKeys })
  const unknown = new LRUCache<string, Asked>({ max: maxKeys })
  const running = new Map<string, Promise<KeyRecord | undefined>>()
  const first = createConcurrencyLimit({ max: lookupsAtOnce.first, timeoutMs: turnTimeoutMs })
  const again = createConcurrencyLimit({ max: lookupsAtOnce.again, timeoutMs: turnTimeoutMs })
  const changes = createChanges()

  function isFresh(asked: Asked | undefined, organizationId?: string): boolean {
    if (!asked || asked.changes < changes.lastOf(organizationId)) return false
    const age = clock() - asked.at
    // A clock that was set back must not make an answer last longer.
    return age >= 0 && age < cacheMs
  }

  async function ask(key: string): Promise<KeyRecord | undefined> {
    const asked = { at: clock(), changes: changes.count() }
    const record = await findKey(lookupHashes(keyring, key))
    onKeyLookup?.(record ? 'found' : 'unknown')
    remember(key, record, asked)
    return record
  }

  function remember(key: string, record: KeyRecord | undefined, asked: Asked): void {
    // Overtaken by a change and by a later look-up, this answer would only replace a newer one.
    if ((known.get(key)?.changes ?? 0) > asked.changes) return
    if (record) {
      known.set(key, { ...asked, record })
      unknown.delete(key)
    } else {
      known.delete(key)
      unknown.set(key, asked)
    }
  }

  function lookUp(key: string, source: { readonly ip: string }): Promise<KeyRecord | undefined> {
    // A key that was verified here before is no guess, and spends nothing: else the customers behind one proxy,
    // whose keys all go stale at the same change, would lock each other out.
    const slots = known.has(key) ? again : first
    if (slots === first && !sourceBudget.spend(source.ip)) {
      onKeyLookup?.('refused')
      throw new ApiError('rate_limit.exceeded', { headers: { 'retry-after': '1' } })
    }
    const answer = slots.run([], () => ask(key))
    const lookup = (slots === first ? refunding(answer, source.ip) : answer).finally(() => {
      if (running.get(key) === lookup) running.delete(key)
    })
    running.set(key, lookup)
    return lookup
  }

  /** Only guesses spend the budget: not customers behind one address after a restart, nor what is tried again. */
  async function refunding(
    answer: Promise<KeyRecord | undefined>,
    ip: string,
  ): Promise<KeyRecord | undefined> {
    let isGuess = false
    try {
      const record = await answer
      isGuess = !record
      return record
    } finally {
      if (!isGuess) sourceBudget.giveBack(ip)
    }
  }

  return {
    /**
     * undefined when the key does not exist. Without a promise where the answer is known. ApiError:
     * rate_limit.exceeded when the source has asked about too many keys.
     */
    find(
      key: string,
      source: { readonly ip: string },
    ): KeyRecord | undefined | Promise<KeyRecord | undefined> {
      const entry = known.get(key)
      if (entry && isFresh(entry, entry.record.principal.organizationId)) return entry.record
      // What is not even a key, by its form and checksum, costs no look-up.
      if (!parseApiKey(key) || isFresh(unknown.get(key))) return undefined
      return running.get(key) ?? lookUp(key, source)
    },
    /**
     * From now on no answer to an earlier question is believed, also where it is still to come. Without ids that
     * holds for keys of all organizations.
     */
    invalidate(organizationIds?: readonly string[]): void {
      changes.note(organizationIds)
      for (const key of running.keys()) {
        const owner = known.get(key)?.record.principal.organizationId
        // Whose a key is that was never found is not known yet.
        if (!organizationIds || !owner || organizationIds.includes(owner)) running.delete(key)
      }
    },
  }
}

const maxOrganizations = 10_000

/**
 * Counts changes of organizations and their keys. They are counted apart, so that an organization that changes its
 * keys all the time costs the others nothing.
 */
export function createChanges() {
  const lastOf = new Map<string, number>()
  let count = 0
  let lastOfAll = 0

  return {
    count: () => count,
    lastOf: (organizationId?: string) =>
      Math.max(lastOfAll, (organizationId && lastOf.get(organizationId)) || 0),
    note(organizationIds: readonly string[] | undefined): void {
      count++
      if (organizationIds && lastOf.size + organizationIds.length <= maxOrganizations) {
        for (const id of organizationIds) lastOf.set(id, count)
        return
      }
      lastOf.clear()
      lastOfAll = count
    },
  }
}
