import { LRUCache } from 'lru-cache'

type Key = string | number
type Value = object | string | number | boolean
type Options<K extends Key, V extends Value> = Omit<
  LRUCache.OptionsSizeLimit<K, V, unknown>,
  'maxSize' | 'sizeCalculation'
>

/**
 * Creates an LRU cache of at most `max` entries that grows as it fills. LRUCache's own option `max` isn't used, because
 * it allocates room for all entries up front: half a million over all caches of a process.
 */
export const createLru = <K extends Key, V extends Value>(
  max: number,
  options?: Options<K, V>,
): LRUCache<K, V> => new LRUCache<K, V>({ ...options, maxSize: max, sizeCalculation: () => 1 })

/** Returns `work` with a cache of its results for the `max` most recently used argument lists. */
export function memoize<Args extends Key[], V extends Value>(
  max: number,
  work: (...args: Args) => V,
): (...args: Args) => V {
  const results = createLru<string, V>(max)
  return (...args) => {
    const key = args.join('\0')
    const cached = results.get(key)
    if (cached !== undefined) return cached
    const result = work(...args)
    results.set(key, result)
    return result
  }
}
