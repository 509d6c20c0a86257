import ipaddr from 'ipaddr.js'
import type { Response } from 'maxmind'
import { Reader } from 'maxmind'
import { type Key, keyOfAddress, noRanges, type Range, type Ranges } from './ranges.ts'

// Parsers that read third-party files into ranges. Callers map records to names; records without a name are skipped.

/** Adds a range to those of its IP version. */
export function addRange(ranges: Ranges, range: Range): void {
  const version = typeof range.start === 'bigint' ? 'ipv6' : 'ipv4'
  ranges[version].push(range)
}

/** Parses CSV lines of first address, last address and more columns; columns may be quoted. */
export function rangesOfCsv(text: string, nameOf: (columns: string[]) => string): Ranges {
  const ranges = noRanges()
  for (const line of text.split('\n')) {
    const [first = '', last = '', ...columns] = columnsOf(line.trim())
    const name = ipaddr.isValid(first) && ipaddr.isValid(last) ? nameOf(columns) : ''
    if (name) addRange(ranges, { start: keyOfAddress(first), end: keyOfAddress(last), name })
  }
  return ranges
}

function columnsOf(line: string): string[] {
  const columns = line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)
  return [...columns].map(([, quoted, plain = '']) => quoted?.replaceAll('""', '"') ?? plain)
}

/** Reads all networks of an MMDB file, named by their records. */
export function rangesOfMmdb(file: Buffer, nameOf: (record: object) => string): Ranges {
  const reader = new Reader<Response>(file)
  const ranges = noRanges()
  walk(reader, { bits: 32, from: 0n, to: 2n ** 32n, ranges, nameOf })
  if (reader.metadata.ipVersion === 6)
    walk(reader, { bits: 128, from: 0x2000n << 112n, to: 0x4000n << 112n, ranges, nameOf })
  return ranges
}

interface Walk {
  bits: 32 | 128
  from: bigint
  to: bigint
  ranges: Ranges
  nameOf: (record: object) => string
}

function walk(reader: Reader<Response>, { bits, from, to, ranges, nameOf }: Walk): void {
  for (let at = from; at < to; ) {
    const [record, length] = reader.getWithPrefixLength(addressOf(at, bits))
    const size = 1n << BigInt(bits - length)
    const end = at - (at % size) + size - 1n
    const name = record === null ? '' : nameOf(record)
    if (name) addRange(ranges, { start: keyOf(at, bits), end: keyOf(end, bits), name })
    at = end + 1n
  }
}

const keyOf = (address: bigint, bits: 32 | 128): Key =>
  bits === 32 ? Number(address) : address >> 64n

function addressOf(value: bigint, bits: 32 | 128): string {
  const hex = value.toString(16).padStart(bits / 4, '0')
  return ipaddr.fromByteArray([...Buffer.from(hex, 'hex')]).toString()
}

/**
 * Parses `data/ranges.bin` of the Python package iporigin, version 1: a header, labels (provider, tab, kind), and
 * records of first address, last address and label.
 */
export function rangesOfIporigin(
  file: Buffer,
  nameOf: (label: { provider: string; kind: string }) => string,
): { made: Date; ranges: Ranges } {
  if (file.toString('latin1', 0, 8) !== 'IPORIGIN' || file.readUInt16LE(8) !== 1)
    throw new Error('not an iporigin file of version 1')
  const made = new Date(Number(file.readBigUInt64LE(10)) * 1000)
  let at = 28
  const names = Array.from({ length: file.readUInt16LE(18) }, () => {
    const from = at + 2
    at = from + file.readUInt16LE(at)
    const [provider = '', kind = ''] = file.toString('utf8', from, at).split('\t')
    return nameOf({ provider, kind })
  })
  const ranges = noRanges()
  for (let left = file.readUInt32LE(20); left > 0; left--, at += 10) {
    const name = names[file.readUInt16LE(at + 8)]
    if (name)
      ranges.ipv4.push({ start: file.readUInt32LE(at), end: file.readUInt32LE(at + 4), name })
  }
  for (let left = file.readUInt32LE(24); left > 0; left--, at += 34) {
    const name = names[file.readUInt16LE(at + 32)]
    if (name)
      ranges.ipv6.push({
        start: file.readBigUInt64BE(at),
        end: file.readBigUInt64BE(at + 16),
        name,
      })
  }
  return { made, ranges }
}

const addressOrNetwork =
  /(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]{1,4}:[0-9a-f:]*:[0-9a-f:]*)(?:\/\d{1,3})?(?![\w.:])/gi

/** Finds every address and network in a text, whether it is JSON, CSV or lines. */
export function rangesOfText(text: string, name: string): Ranges {
  const ranges = noRanges()
  for (const [entry] of text.matchAll(addressOrNetwork)) {
    const range = rangeOfEntry(entry, name)
    if (range) addRange(ranges, range)
  }
  return ranges
}

/** Returns the range of an address or network (CIDR); undefined if it is neither. */
export function rangeOfEntry(entry: string, name: string): Range | undefined {
  const [address = '', length] = entry.split('/')
  const cidr = `${address}/${length ?? (address.includes(':') ? 128 : 32)}`
  return ipaddr.isValidCIDR(cidr) ? { ...endsOf(cidr), name } : undefined
}

function endsOf(cidr: string): { start: Key; end: Key } {
  const version = cidr.includes(':') ? ipaddr.IPv6 : ipaddr.IPv4
  const [first, last] = [
    version.networkAddressFromCIDR(cidr),
    version.broadcastAddressFromCIDR(cidr),
  ]
  return { start: keyOfAddress(first.toString()), end: keyOfAddress(last.toString()) }
}
