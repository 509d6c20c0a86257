import { readFile, stat } from 'node:fs/promises'
import { type IpIndex, indexRanges, keyOfAddress, mergeRanges, nameAt, noRanges } from './ranges.ts'
import { addRange, rangeOfEntry } from './readers.ts'

/** A configured reputation list: its file and category. */
export interface ListFile {
  category: string
  file: string
}

export interface ReputationList extends ListFile {
  /** Entries named by size: `network` for a whole network, `address` for anything smaller. */
  entries: IpIndex
  /** Number of entries. */
  count: number
  /** Numbers of the lines that are neither an entry nor a comment, from 1. */
  badLines: number[]
  /** Modification time of the file, epoch milliseconds. */
  changedAt: number
}

/** Result of looking up an address in the lists. */
export interface Reputation {
  listed: boolean
  categories: string[]
  /** True if a list contains the whole network of the address: its IPv4 /24 or IPv6 /48, or a larger one. */
  suspicious_network: boolean
}

const isWholeNetwork = (entry: string): boolean => {
  const [address = '', length] = entry.split('/')
  return length !== undefined && Number(length) <= (address.includes(':') ? 48 : 24)
}

/** Reads a list in the format of Spamhaus and FireHOL: an address or CIDR per line, comments after `#` or `;`. */
export async function readReputationList({ category, file }: ListFile): Promise<ReputationList> {
  const { mtimeMs: changedAt } = await stat(file)
  const lines = (await readFile(file, 'utf8')).split('\n')
  const badLines: number[] = []
  const ranges = noRanges()
  for (const [i, line] of lines.entries()) {
    const [entry = ''] = line.split(/[#;]/, 1)
    const text = entry.trim()
    if (text === '') continue
    const range = rangeOfEntry(text, isWholeNetwork(text) ? 'network' : 'address')
    if (range) addRange(ranges, range)
    else badLines.push(i + 1)
  }
  const entries = indexRanges(mergeRanges([ranges], (name) => (name === 'network' ? 1 : 0)))
  return {
    category,
    file,
    entries,
    count: ranges.ipv4.length + ranges.ipv6.length,
    badLines,
    changedAt,
  }
}

/** Looks up a valid address in all lists. */
export function reputationOf(lists: readonly ReputationList[], ip: string): Reputation {
  const key = keyOfAddress(ip)
  const results = lists.map(({ category, entries }) => ({ category, name: nameAt(entries, key) }))
  const hits = results.filter(({ name }) => name !== '')
  return {
    listed: hits.length > 0,
    categories: [...new Set(hits.map(({ category }) => category))],
    suspicious_network: hits.some(({ name }) => name === 'network'),
  }
}
