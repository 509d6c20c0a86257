import { readFile, stat } from 'node:fs/promises'
import { indexRanges, keyOfAddress, mergeRanges, nameAt, noRanges, type Subject } from './ranges.ts'
import { addRange, rangeOfEntry } from './readers.ts'

/** A list of addresses that an operator named, and what it is a list of. */
export interface ListFile {
  category: string
  file: string
}

export interface ReputationList extends ListFile {
  /** Entries by how much they name: `network`, or a single `address` or few. */
  entries: Subject
  /** How many there are. */
  count: number
  /** Numbers of lines that are neither an entry nor a comment. */
  badLines: number[]
  /** When the file was written, epoch milliseconds. */
  changedAt: number
}

/** What lists say of an address. */
export interface Reputation {
  listed: boolean
  categories: string[]
  /** A list names the whole network of the address: its /24 of IPv4 or /48 of IPv6, or a larger one. */
  suspicious_network: boolean
}

const wholeNetwork = (entry: string): boolean => {
  const [address = '', length] = entry.split('/')
  return length !== undefined && Number(length) <= (address.includes(':') ? 48 : 24)
}

/** An entry a line, as Spamhaus and FireHOL write them: an address or CIDR, and comments behind `#` or `;`. */
export async function readReputationList({ category, file }: ListFile): Promise<ReputationList> {
  const { mtimeMs: changedAt } = await stat(file)
  const lines = (await readFile(file, 'utf8')).split('\n')
  const badLines: number[] = []
  const ranges = noRanges()
  for (const [i, line] of lines.entries()) {
    const [entry = ''] = line.split(/[#;]/, 1)
    const text = entry.trim()
    if (text === '') continue
    const range = rangeOfEntry(text, wholeNetwork(text) ? 'network' : 'address')
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

/** `ip` is a valid address. */
export function reputationOf(lists: readonly ReputationList[], ip: string): Reputation {
  const key = keyOfAddress(ip)
  const found = lists.map(({ category, entries }) => ({ category, name: nameAt(entries, key) }))
  const hits = found.filter(({ name }) => name !== '')
  return {
    listed: hits.length > 0,
    categories: [...new Set(hits.map(({ category }) => category))],
    suspicious_network: hits.some(({ name }) => name === 'network'),
  }
}
