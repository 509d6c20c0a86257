import { LRUCache } from 'lru-cache'
import { lookupHashes, parseApiKey } from '../crypto/api-keys.ts'
import type { Keyring } from '../crypto/keyring.ts'
import { ApiError } from '../errors/errors.ts'
import { createSlots } from '../event-store/decide.ts'
import type { Clock } from '../ids.ts'
import { createChanges } from './key-changes.ts'
import type { KeyRecord } from './principal.ts'
import { createSourceBudget, type SourceBudget } from './source-budget.ts'

export type LookupOutcome = 'found' | 'unknown' | 'refused'

export interface KeyCacheOptions {
  findKey: (lookupHashes: string[]) => Promise<KeyRecord | undefined>
  keyring: Keyring
  clock: Clock
  /** How long an answer about a key is believed without asking again, in milliseconds. */
  cacheMs: number
  /** What a source may ask about keys that are new here (default 10 a second, 50 at once). */
  sourceBudget?: SourceBudget | undefined
  /** Called for each look-up, and for each that the source's budget did not allow. */
  onKeyLookup?: ((outcome: LookupOutcome) => void) | undefined
}

/** When a question was asked: the answer may be as old as that, however late it came. */
interface Asked {
  at: number
  /** How many changes had been heard of. */
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
 * Finds keys, each at most once per `cacheMs`; concurrent requests with one key share a look-up. Keys are kept as
 * they are, not hashed, and in memory alone; those that nobody has are kept apart, so that guesses push out no
 * customer's key. Remembering these delays no new key: a key is random, and nobody knows it before it is readable.
 */
export function createKeyCache({ findKey, keyring, clock, cacheMs, ...options }: KeyCacheOptions) {
  const { sourceBudget = createSourceBudget({ clock }), onKeyLookup } = options
  const known = new LRUCache<string, Known>({ max: maxKeys })
  const unknown = new LRUCache<string, Asked>({ max: maxKeys })
  const running = new Map<string, Promise<KeyRecord | undefined>>()
  const first = createSlots({ max: lookupsAtOnce.first, timeoutMs: turnTimeoutMs })
  const again = createSlots({ max: lookupsAtOnce.again, timeoutMs: turnTimeoutMs })
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

  /** Only guesses are to be slowed down: not customers behind one address after a restart, nor what is tried again. */
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
     * The key as it is stored, undefined when nobody has it; without a promise where that is known. `source` is who
     * presents it. ApiError: rate_limit.exceeded when the source has asked about too many keys.
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
     * No answer to a question asked before now is believed any longer, also where it is still to come: about keys of
     * these organizations, or about any key.
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
