import { LRUCache } from 'lru-cache'

type Key = string | number
type Value = object | string | number | boolean
type Options<K extends Key, V extends Value> = Omit<
  LRUCache.OptionsSizeLimit<K, V, unknown>,
  'maxSize' | 'sizeCalculation'
>

/**
 * Remembers the `max` entries that were used last, and grows as it fills. By its own option `max` an LRUCache would take the
 * room of all of them at once, and those of a process have room for half a million.
 */
export const createLru = <K extends Key, V extends Value>(
  max: number,
  options?: Options<K, V>,
): LRUCache<K, V> => new LRUCache<K, V>({ ...options, maxSize: max, sizeCalculation: () => 1 })

/** Returns `work` with its results for the `max` texts that were asked last kept. */
export function memoized<V extends Value>(
  max: number,
  work: (text: string) => V,
): (text: string) => V {
  const results = createLru<string, V>(max)
  return (text) => {
    const kept = results.get(text)
    if (kept !== undefined) return kept
    const result = work(text)
    results.set(text, result)
    return result
  }
}
