import { lookupHashes, parseApiKey } from '../crypto/api-keys.ts'
import type { Keyring } from '../crypto/keyring.ts'
import { createConcurrencyLimit } from '../flow/limit.ts'
import type { Clock } from '../ids.ts'
import { createLru } from '../lru.ts'
import { type Budget, createBudget, overBudget } from './budget.ts'
import type { KeyRecord } from './principal.ts'
import { sourceOf } from './source.ts'

export type LookupOutcome = 'found' | 'unknown' | 'refused'

export interface KeyCacheOptions {
  findKey: (lookupHashes: string[]) => Promise<KeyRecord | undefined>
  keyring: Keyring
  clock: Clock
  cacheMs: number
  /** Look-ups of keys that are new here, by source (default 10 a second, 50 at once). */
  sourceBudget?: Budget | undefined
  onKeyLookup?: ((outcome: LookupOutcome) => void) | undefined
}

interface Answer {
  record: KeyRecord | undefined
  /** When it was requested: the answer may be as old as the request, however late it came. */
  requestedAt: number
}

type PendingLookup = Promise<KeyRecord | undefined>

const maxKeys = 10_000
// Together a fraction of the connections: guesses wait for each other, and never for long before a customer's key.
const lookupsAtOnce = { first: 4, again: 4 }
const turnTimeoutMs = 5000

/**
 * Looks each key up at most once per `cacheMs`. Concurrent requests with one key share a look-up. Keys are stored as
 * they are, not hashed, and only in memory. Keys that do not exist have a cache of their own, so that guesses push out
 * no customer's key. That delays no new key, because nobody knows a random key before it is readable.
 */
export function createKeyCache({ findKey, keyring, clock, cacheMs, ...options }: KeyCacheOptions) {
  const { sourceBudget = createBudget({ clock }), onKeyLookup } = options
  const known = createLru<string, Answer>(maxKeys)
  const unknown = createLru<string, Answer>(maxKeys)
  const running = new Map<string, PendingLookup>()
  const first = createConcurrencyLimit({ max: lookupsAtOnce.first, timeoutMs: turnTimeoutMs })
  const again = createConcurrencyLimit({ max: lookupsAtOnce.again, timeoutMs: turnTimeoutMs })

  async function fetchRecord(key: string, isBelieved: () => boolean): PendingLookup {
    const requestedAt = clock()
    const record = await findKey(lookupHashes(keyring, key))
    onKeyLookup?.(record ? 'found' : 'unknown')
    if (isBelieved()) {
      known.delete(key)
      unknown.delete(key)
      const answers = record ? known : unknown
      answers.set(key, { record, requestedAt })
    }
    return record
  }

  function findRecord(key: string, { ip }: { readonly ip: string }): PendingLookup {
    // A key that was verified here before is no guess, and spends nothing: else the customers behind one proxy,
    // whose keys all go stale at the same change, would lock each other out.
    const mayBeGuess = !known.has(key)
    const source = sourceOf(ip)
    if (mayBeGuess && !sourceBudget.spend(source)) {
      onKeyLookup?.('refused')
      throw overBudget()
    }
    const isBelieved = (): boolean => running.get(key) === lookup
    const answer = (mayBeGuess ? first : again).run([], () => fetchRecord(key, isBelieved))
    // Only guesses spend the budget: not customers behind one address after a restart, nor what is tried again.
    const refund = () => sourceBudget.giveBack(source)
    if (mayBeGuess) answer.then((record) => record && refund(), refund)
    const lookup: PendingLookup = answer.finally(() => {
      if (isBelieved()) running.delete(key)
    })
    running.set(key, lookup)
    return lookup
  }

  return {
    /** What is known here of a key that was verified before, however long ago. */
    peek: (key: string): KeyRecord | undefined => known.peek(key)?.record,
    /**
     * undefined when the key does not exist. Without a promise where the answer is known. ApiError:
     * rate_limit.exceeded when the source has sent too many keys that are new here.
     */
    find(
      key: string,
      source: { readonly ip: string },
    ): KeyRecord | undefined | Promise<KeyRecord | undefined> {
      const answer = known.get(key) ?? unknown.get(key)
      if (answer && isFresh(answer, { now: clock(), cacheMs })) return answer.record
      // What is not even a key, by its form and checksum, costs no look-up.
      if (!parseApiKey(key)) return undefined
      return running.get(key) ?? findRecord(key, source)
    },
    /**
     * From now on no answer to an earlier request is believed, also where it is still to come. Without ids that
     * holds for keys of all organizations.
     */
    invalidate(organizationIds?: readonly string[]): void {
      const isChanged = isOfOrganizations(organizationIds)
      for (const key of running.keys()) {
        const answer = known.get(key)
        // A key that was never found may turn out to be one of a changed organization, so its look-up is not believed.
        if (!answer || isChanged(answer)) running.delete(key)
      }
      known.forEach((answer) => {
        if (isChanged(answer)) answer.requestedAt = Number.NEGATIVE_INFINITY
      })
      if (!organizationIds) unknown.clear()
    },
  }
}

function isFresh({ requestedAt }: Answer, { now, cacheMs }: { now: number; cacheMs: number }) {
  const age = now - requestedAt
  // A clock that was set back must not make an answer last longer.
  return age >= 0 && age < cacheMs
}

function isOfOrganizations(
  organizationIds: readonly string[] | undefined,
): (answer: Answer) => boolean {
  if (!organizationIds) return () => true
  const ids = new Set(organizationIds)
  return ({ record }) => record !== undefined && ids.has(record.principal.organizationId)
}
