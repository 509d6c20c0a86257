import { promisify } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import { brotliCompressSync, brotliDecompress, constants } from 'node:zlib'
import { z } from 'zod'
import type { IpIndex } from './ranges.ts'

/** Parts of the IP data file. */
const subjects = ['country', 'network', 'labels'] as const
export type SubjectName = (typeof subjects)[number]

const source = z.object({
  name: z.string(),
  subject: z.enum(subjects),
  licence: z.string(),
  /** Date of the data, such as `2026-06-01`. */
  date: z.iso.date(),
  note: z.string().optional(),
})
const head = z.object({
  format: z.literal('tidegate addresses 2'),
  made: z.iso.date(),
  sources: z.array(source),
})
export type AddressSource = z.output<typeof source>
export type AddressHead = z.output<typeof head>

/**
 * The IP data file in memory: an index for each subject. Names look like `DE` (country), `64500 Example Networks`
 * (network) and `vpn Mullvad` (labels).
 */
export interface AddressData extends Record<SubjectName, IpIndex> {
  head: AddressHead
}

// File format: a line of JSON, so that `head -1` shows the sources, then the indexes, written by `v8.serialize` and
// compressed with Brotli. Numbers are in the machine's byte order, which is the same on x86 and ARM.

// Delta encoding, because differences of sorted numbers compress better. Adding in place is ten times as fast as `map`.
const starts4 = z.codec(z.instanceof(Uint32Array), z.instanceof(Uint32Array), {
  encode: (starts) => starts.map((start, i) => start - (starts[i - 1] ?? 0)),
  decode: (starts) => {
    for (let i = 1; i < starts.length; i++) starts[i] = (starts[i] ?? 0) + (starts[i - 1] ?? 0)
    return starts
  },
})
const starts6 = z.codec(z.instanceof(BigUint64Array), z.instanceof(BigUint64Array), {
  encode: (starts) => starts.map((start, i) => start - (starts[i - 1] ?? 0n)),
  decode: (starts) => {
    for (let i = 1; i < starts.length; i++) starts[i] = (starts[i] ?? 0n) + (starts[i - 1] ?? 0n)
    return starts
  },
})
const values = z.instanceof(Uint32Array)
const subject = z.object({
  names: z.array(z.string()),
  ipv4: z.object({ starts: starts4, values }),
  ipv6: z.object({ starts: starts6, values }),
})
const body = z.object({ country: subject, network: subject, labels: subject })

export function encodeAddresses({ head, ...data }: AddressData): Buffer {
  const bytes = serialize(z.encode(body, data))
  // Maximum quality would take a minute and save only a tenth.
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: 9,
    [constants.BROTLI_PARAM_LGWIN]: 24,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  }
  return Buffer.concat([
    Buffer.from(`${JSON.stringify(head)}\n`),
    brotliCompressSync(bytes, { params }),
  ])
}

const decompress = promisify(brotliDecompress)

/** Returns the parsed first line. Throws if it is not an IP data file. */
export function readHead(file: Buffer): AddressHead {
  const end = file.indexOf('\n')
  return head.parse(JSON.parse(file.toString('utf8', 0, Math.max(end, 0))))
}

/** Decodes an IP data file. Throws if it has another format or version. */
export async function decodeAddresses(file: Buffer): Promise<AddressData> {
  const head = readHead(file)
  const bytes = await decompress(file.subarray(file.indexOf('\n') + 1))
  return { head, ...body.parse(deserialize(bytes)) }
}
