import { promisify } from 'node:util'
import { brotliCompressSync, brotliDecompress, constants } from 'node:zlib'
import { z } from 'zod'
import type { RangeTable, Subject } from './ranges.ts'

/** What the compact file of addresses knows, by subject. */
export const subjects = ['country', 'network', 'labels'] as const
export type SubjectName = (typeof subjects)[number]

const source = z.object({
  name: z.string(),
  subject: z.enum(subjects),
  licence: z.string(),
  /** When the data were made, `2026-06-01`. */
  date: z.iso.date(),
  note: z.string().optional(),
})
const head = z.object({
  format: z.literal('tidegate addresses 1'),
  made: z.iso.date(),
  sources: z.array(source),
})
export type AddressSource = z.output<typeof source>
export type AddressHead = z.output<typeof head>

/**
 * Names are `DE` (country), `64500 Example Networks` (network: number and holder), and `vpn Mullvad` (labels: kind and
 * operator).
 */
export interface AddressData extends Record<SubjectName, Subject> {
  head: AddressHead
}

// The form of the file: one line of JSON, so that `head -1` tells what it is made of, and then a Brotli stream. In it
// are, for each subject, the length and bytes of its names as JSON, and its tables of IPv4 and IPv6. A table is the number
// of its ranges, their starts and their values. Starts are the differences of their first 32 bits, and for IPv6 then all
// second 32 bits. Numbers are as in LEB128: 7 bits a byte, lowest first. Whoever reads it has the bytes of its numbers in
// the order of x86 and ARM.

export function encodeAddresses({ head, ...data }: AddressData): Buffer {
  const body = Buffer.concat(subjects.flatMap((name) => encodeSubject(data[name])))
  // The best quality takes a minute, and saves a tenth.
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: 9,
    [constants.BROTLI_PARAM_LGWIN]: 24,
    [constants.BROTLI_PARAM_SIZE_HINT]: body.length,
  }
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), brotliCompressSync(body, { params })])
}

function encodeSubject({ names, ipv4, ipv6 }: Subject): Buffer[] {
  const text = Buffer.from(JSON.stringify(names))
  return [varints([text.length]), text, ...encodeTable(ipv4), ...encodeTable(ipv6)]
}

function encodeTable({ starts, values }: RangeTable): Buffer[] {
  const words = new Uint32Array(starts.buffer, starts.byteOffset, starts.byteLength / 4)
  const columns = starts instanceof BigUint64Array ? [everyOther(words, 1), everyOther(words, 0)] : [words]
  const [high = words, ...low] = columns
  const steps = high.map((word, i) => word - (high[i - 1] ?? 0))
  return [varints([values.length]), ...[steps, ...low, values].map(varints)]
}

const everyOther = (words: Uint32Array, first: number) => words.filter((_, i) => i % 2 === first)

function varints(numbers: Iterable<number>): Buffer {
  const bytes: number[] = []
  for (let rest of numbers) {
    for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128)
    bytes.push(rest)
  }
  return Buffer.from(bytes)
}

const decompress = promisify(brotliDecompress)

/** The first line alone. Throws where it is no such file. */
export function readHead(file: Buffer): AddressHead {
  const end = file.indexOf('\n')
  return head.parse(JSON.parse(file.toString('utf8', 0, Math.max(end, 0))))
}

/** Throws where it is no such file, or one of another form. */
export async function decodeAddresses(file: Buffer): Promise<AddressData> {
  const head = readHead(file)
  const read = reader(await decompress(file.subarray(file.indexOf('\n') + 1)))
  const subject = (): Subject => ({ names: read.names(), ipv4: read.ipv4(), ipv6: read.ipv6() })
  return { head, country: subject(), network: subject(), labels: subject() }
}

const namesForm = z.array(z.string())

function reader(body: Buffer) {
  let at = 0
  // The bits above 31 come by multiplication, because shifts end there.
  function number(): number {
    let [value, unit] = [0, 1]
    for (;;) {
      const byte = body[at++]
      if (byte === undefined) throw new Error('the file ends too early')
      value += (byte & 127) * unit
      if (byte < 128) return value
      unit *= 128
    }
  }
  function names(): string[] {
    const length = number()
    const text = body.toString('utf8', at, at + length)
    at += length
    return namesForm.parse(JSON.parse(text))
  }
  function column(into: Uint32Array, { every = 1, first = 0, isSteps = false } = {}): Uint32Array {
    let value = 0
    for (let i = first; i < into.length; i += every) into[i] = value = isSteps ? value + number() : number()
    return into
  }
  function ipv4(): RangeTable {
    const length = number()
    const starts = column(new Uint32Array(length), { isSteps: true })
    return { starts, values: column(new Uint32Array(length)) }
  }
  function ipv6(): RangeTable {
    const starts = new BigUint64Array(number())
    const words = new Uint32Array(starts.buffer)
    column(words, { every: 2, first: 1, isSteps: true })
    column(words, { every: 2 })
    return { starts, values: column(new Uint32Array(starts.length)) }
  }
  return { names, ipv4, ipv6 }
}
