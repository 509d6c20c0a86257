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

/** Returns `work` with its results for the `max` lists of arguments that were given last kept. */
export function memoized<Args extends Key[], V extends Value>(
  max: number,
  work: (...args: Args) => V,
): (...args: Args) => V {
  const results = createLru<string, V>(max)
  return (...args) => {
    const key = args.join('\0')
    const kept = results.get(key)
    if (kept !== undefined) return kept
    const result = work(...args)
    results.set(key, result)
    return result
  }
}
