import ipaddr from 'ipaddr.js'

/** Sort key of an address: all 32 bits of IPv4, or the first 64 of IPv6, because one customer has an entire /64. */
export type Key = number | bigint

/** Ranges sorted by start, each ending before the next. A value is the index of the range's name; 0 = unknown. */
interface RangeTable<Starts = Uint32Array | BigUint64Array> {
  starts: Starts
  values: Uint32Array<ArrayBuffer>
}

/** An index from addresses to names, such as countries. `names[0]` is empty. */
export interface IpIndex {
  names: string[]
  ipv4: RangeTable<Uint32Array<ArrayBuffer>>
  ipv6: RangeTable<BigUint64Array<ArrayBuffer>>
}

/** A named range; both ends are inclusive. */
export interface Range {
  start: Key
  end: Key
  name: string
}

/** Ranges by IP version: disjoint, in any order. */
export interface Ranges {
  ipv4: Range[]
  ipv6: Range[]
}

export const noRanges = (): Ranges => ({ ipv4: [], ipv6: [] })

/** Returns the name of the range that contains the address; empty if none does. */
export function nameAt({ names, ipv4, ipv6 }: IpIndex, key: Key): string {
  return names[valueAt(typeof key === 'bigint' ? ipv6 : ipv4, key)] ?? ''
}

/** Parses an address; IPv4-mapped IPv6 becomes IPv4. Throws if it is not an address. */
export const parseAddress = (ip: string): ipaddr.IPv4 | ipaddr.IPv6 =>
  // Avoids `process` for IPv4, which it would parse twice.
  ip.includes(':') ? ipaddr.process(ip) : ipaddr.IPv4.parse(ip)

/** Returns the sort key of a valid address. */
export function keyOfAddress(ip: string): Key {
  const bytes = Buffer.from(parseAddress(ip).toByteArray())
  return bytes.length === 4 ? bytes.readUInt32BE() : bytes.readBigUInt64BE()
}

function valueAt({ starts, values }: RangeTable, key: Key): number {
  let [low, high] = [0, starts.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((starts[middle] ?? 0) <= key) low = middle + 1
    else high = middle
  }
  return values[low - 1] ?? 0
}

/** Builds an index. Sorts names by their number of ranges, so that most values are small and compress well. */
export function indexRanges({ ipv4, ipv6 }: Ranges): IpIndex {
  const counts = new Map<string, number>()
  for (const { name } of [...ipv4, ...ipv6]) counts.set(name, (counts.get(name) ?? 0) + 1)
  const names = ['', ...[...counts].sort(byCount).map(([name]) => name)]
  const values = new Map(names.map((name, value) => [name, value]))
  const [v4, v6] = [tableOf(ipv4, values), tableOf(ipv6, values)]
  return {
    names,
    ipv4: { starts: Uint32Array.from(v4.starts, Number), values: Uint32Array.from(v4.values) },
    ipv6: { starts: BigUint64Array.from(v6.starts, BigInt), values: Uint32Array.from(v6.values) },
  }
}

const byCount = ([nameA, a]: [string, number], [nameB, b]: [string, number]) =>
  b - a || (nameA < nameB ? -1 : 1)

function tableOf(ranges: Range[], index: Map<string, number>): { starts: Key[]; values: number[] } {
  const starts: Key[] = []
  const values: number[] = []
  const add = (start: Key, value: number) => {
    if (value === (values.at(-1) ?? 0)) return
    starts.push(start)
    values.push(value)
  }
  let nextFree: Key = 0
  for (const { start, end, name } of ranges.toSorted(byStart)) {
    // If two ranges share a /64, the first one gets it.
    const from = start < nextFree ? nextFree : start
    if (end < from) continue
    if (from > nextFree) add(nextFree, 0)
    add(from, index.get(name) ?? 0)
    nextFree = after(end)
  }
  if (nextFree <= lastKey(nextFree)) add(nextFree, 0)
  return { starts, values }
}

const byStart = (a: Range, b: Range) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0)
const after = (key: Key): Key => (typeof key === 'bigint' ? key + 1n : key + 1)
const lastKey = (like: Key): Key => (typeof like === 'bigint' ? 2n ** 64n - 1n : 2 ** 32 - 1)

/** Returns the ranges from which an index was built. */
export function rangesOf({ names, ipv4, ipv6 }: IpIndex): Ranges {
  return { ipv4: rangesOfTable(ipv4, names), ipv6: rangesOfTable(ipv6, names) }
}

function rangesOfTable({ starts, values }: RangeTable, names: string[]): Range[] {
  return Array.from(values).flatMap((value, i) => {
    const start = starts[i]
    if (value === 0 || start === undefined) return []
    const next = starts[i + 1]
    return [
      { start, end: next === undefined ? lastKey(start) : before(next), name: names[value] ?? '' },
    ]
  })
}

const before = (key: Key): Key => (typeof key === 'bigint' ? key - 1n : key - 1)

interface Ranked extends Range {
  rank: number
}

/** Merges lists of overlapping ranges in any order. The higher rank wins; among equals the smaller range. */
export function mergeRanges(lists: readonly Ranges[], rankOf: (name: string) => number): Ranges {
  const merged = (version: 'ipv4' | 'ipv6') =>
    flatten(
      lists.flatMap((list) => list[version]),
      rankOf,
    )
  return { ipv4: merged('ipv4'), ipv6: merged('ipv6') }
}

// Makes ranges disjoint in a sweep over their edges. The higher rank wins; among equals the later start, which is the
// smaller range.
function flatten(ranges: Range[], rankOf: (name: string) => number): Range[] {
  const ranked = ranges.map((range) => ({ ...range, rank: rankOf(range.name) })).sort(byStart)
  const ends = ranked.map(({ end }) => after(end))
  const edges = [...new Set([...ranked.map(({ start }) => start), ...ends])].sort((a, b) =>
    a < b ? -1 : 1,
  )
  const flat: Range[] = []
  let open: Ranked[] = []
  let next = 0
  for (const [i, start] of edges.entries()) {
    open = open.filter(({ end }) => end >= start)
    for (let range = ranked[next]; range && range.start <= start; range = ranked[++next])
      open.push(range)
    const best = open.reduce<Ranked | undefined>(
      (a, b) => (a && a.rank > b.rank ? a : b),
      undefined,
    )
    const end = edges[i + 1]
    if (best && end !== undefined) flat.push({ start, end: before(end), name: best.name })
  }
  return flat
}
