import { writeFile } from 'node:fs/promises'
import ipaddr from 'ipaddr.js'

// Writes small MMDB files, following github.com/maxmind/MaxMind-DB, MaxMind-DB-spec.md.

export type MmdbValue = string | number | boolean | MmdbValue[] | { [name: string]: MmdbValue }

/** Records of networks by CIDR. */
export type MmdbRecords = Record<string, { [name: string]: MmdbValue }>

const types = { text: 2, double: 3, map: 7, uint32: 6, array: 11, boolean: 14 }
const recordBytes = 3
const separator = Buffer.alloc(16)
const metadataStart = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1')

/**
 * Writes the file: search tree, separator, data, metadata. If there is an IPv6 network, the file has both IP versions,
 * with IPv4 under `::/96`.
 */
export async function writeMmdb(
  file: string,
  databaseType: string,
  records: MmdbRecords,
): Promise<void> {
  const data: Buffer[] = []
  const tree: Tree = [[null, null]]
  const version = Object.keys(records).some((cidr) => cidr.includes(':')) ? 6 : 4
  let offset = 0
  for (const [cidr, record] of Object.entries(records)) {
    const encoded = encode(record)
    data.push(encoded)
    insert(tree, bitsOf(cidr, version), offset)
    offset += encoded.length
  }
  const metadata = encode({
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 1,
    database_type: databaseType,
    description: { en: 'made by a test' },
    ip_version: version,
    languages: ['en'],
    node_count: tree.length,
    record_size: recordBytes * 8,
  })
  await writeFile(
    file,
    Buffer.concat([encodeTree(tree), separator, ...data, metadataStart, metadata]),
  )
}

/** Branch of a node: null = no data, a number = another node, otherwise an offset in the data. */
type Branch = null | number | { data: number }
type Tree = [Branch, Branch][]

/** Returns the bits of a network's prefix in a tree of that IP version. */
function bitsOf(cidr: string, version: 4 | 6): string {
  const [address, length] = ipaddr.parseCIDR(cidr)
  const bytes = address.toByteArray()
  const bits = bytes.map((byte) => byte.toString(2).padStart(8, '0')).join('')
  const under = version === 6 && address.kind() === 'ipv4' ? '0'.repeat(96) : ''
  return under + bits.slice(0, length)
}

function insert(tree: Tree, bits: string, offset: number): void {
  let node = 0
  for (const [i, bit] of [...bits].entries()) {
    const branches = tree[node]
    if (!branches) throw new Error('no such node')
    const side = bit === '1' ? 1 : 0
    if (i === bits.length - 1) branches[side] = { data: offset }
    else if (typeof branches[side] !== 'number') branches[side] = tree.push([null, null]) - 1
    node = Number(branches[side])
  }
}

function encodeTree(tree: Tree): Buffer {
  const recordOf = (branch: Branch) => {
    if (branch === null) return tree.length
    return typeof branch === 'number' ? branch : tree.length + separator.length + branch.data
  }
  const encoded = Buffer.alloc(tree.length * 2 * recordBytes)
  tree.flat().forEach((branch, i) => {
    encoded.writeUIntBE(recordOf(branch), i * recordBytes, recordBytes)
  })
  return encoded
}

function encode(value: MmdbValue): Buffer {
  if (typeof value === 'string')
    return field(types.text, Buffer.byteLength(value), Buffer.from(value))
  if (typeof value === 'boolean') return field(types.boolean, value ? 1 : 0)
  if (typeof value === 'number') return encodeNumber(value)
  if (Array.isArray(value)) return field(types.array, value.length, ...value.map(encode))
  const members = Object.entries(value).flatMap(([name, member]) => [encode(name), encode(member)])
  return field(types.map, Object.keys(value).length, ...members)
}

function encodeNumber(value: number): Buffer {
  const whole = Number.isInteger(value) && value >= 0
  const bytes = Buffer.alloc(whole ? 4 : 8)
  if (whole) bytes.writeUInt32BE(value)
  else bytes.writeDoubleBE(value)
  return field(whole ? types.uint32 : types.double, bytes.length, bytes)
}

/** Returns a field: control byte, a second byte for types above 7, sizes up to 284, and content. */
function field(type: number, size: number, ...content: Buffer[]): Buffer {
  const short = Math.min(size, 29)
  const control = type <= 7 ? [(type << 5) | short] : [short, type - 7]
  return Buffer.concat([Buffer.from(size > 28 ? [...control, size - 29] : control), ...content])
}
