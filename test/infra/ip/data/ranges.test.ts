import { serialize } from 'node:v8'
import { brotliCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  type AddressData,
  decodeAddresses,
  encodeAddresses,
} from '../../../../infra/ip/data/file.ts'
import { labelOfIporigin, mergeLabels } from '../../../../infra/ip/data/labels.ts'
import {
  indexRanges,
  keyOfAddress,
  nameAt,
  type Range,
  rangesOf,
} from '../../../../infra/ip/data/ranges.ts'

const seed = Date.now()
console.log(`seed ${seed}`)

const names = ['hosting A', 'hosting B', 'cdn C', 'bot D', 'vpn E', 'tor F']
const ranges = fc.array(
  fc.record({ at: fc.nat(60), size: fc.nat(12), name: fc.constantFrom(...names) }),
  {
    maxLength: 12,
  },
)
const head = { format: 'tidegate addresses 2' as const, made: '2026-11-27', sources: [] }
const empty = indexRanges({ ipv4: [], ipv6: [] })

// The lowest and highest addresses, and some in between.
const bases = { ipv4: [0, 5000, 2 ** 32 - 80], ipv6: [0n, 2n ** 40n, 2n ** 64n - 80n] }

it('merged ranges, encoded and decoded, match a linear search for each address', async () => {
  const property = fc.asyncProperty(ranges, fc.nat(2), async (drawn, at) => {
    const base4 = bases.ipv4[at] ?? 0
    const base6 = bases.ipv6[at] ?? 0n
    const ipv4 = drawn.map(
      ({ at, size, name }): Range => ({ start: base4 + at, end: base4 + at + size, name }),
    )
    const ipv6 = ipv4.map(({ start, end, name }): Range => {
      const place = (key: number | bigint) => base6 + BigInt(Number(key) - base4)
      return { start: place(start), end: place(end), name }
    })
    const labels = indexRanges(mergeLabels([{ ipv4, ipv6 }]))
    const data: AddressData = { head, country: empty, network: empty, labels }
    const decoded = (await decodeAddresses(encodeAddresses(data))).labels
    for (let place = 0; place < 80; place++) {
      const found = nameAt(decoded, base4 + place)
      expect(nameAt(decoded, base6 + BigInt(place))).toBe(found)
      expect(rankOf(found)).toBe(rankOf(best(ipv4, base4 + place)))
      expect(
        found === '' || ipv4.some((range) => range.name === found && holds(range, base4 + place)),
      ).toBe(true)
    }
    expect(rangesOf(indexRanges(rangesOf(decoded)))).toEqual(rangesOf(decoded))
  })
  await fc.assert(property, { seed, numRuns: 100 })
})

const kinds = ['', 'hosting', 'cdn', 'bot', 'vpn', 'tor']
const rankOf = (name: string) => kinds.indexOf(name.split(' ')[0] ?? '')
const holds = ({ start, end }: Range, key: number) => start <= key && key <= end
const best = (ranges: Range[], key: number) =>
  ranges
    .filter((range) => holds(range, key))
    .reduce((a, { name }) => (rankOf(name) > rankOf(a) ? name : a), '')

it.each([
  ['0.0.0.1', 1],
  ['255.255.255.255', 2 ** 32 - 1],
  ['::ffff:1.2.3.4', 0x01020304],
  ['2001:db8::', 0x20010db8_00000000n],
  ['2001:db8:0:1::9', 0x20010db8_00000001n],
])('the address %s has the key %s', (ip, key) => {
  expect(keyOfAddress(ip)).toBe(key)
})

it('the first of several ranges gets a /64 that they share', () => {
  const ipv6 = [
    { start: 5n, end: 7n, name: 'A' },
    { start: 7n, end: 7n, name: 'B' },
    { start: 7n, end: 9n, name: 'C' },
  ]
  const index = indexRanges({ ipv4: [], ipv6 })
  expect([4n, 5n, 7n, 8n, 9n, 10n].map((key) => nameAt(index, key))).toEqual([
    '',
    'A',
    'A',
    'C',
    'C',
    '',
  ])
})

it.each([
  ['Amazon AWS', 'hosting', 'hosting Amazon AWS'],
  ['Apple Private Relay', 'vpn', 'relay Apple Private Relay'],
  ['Akamai', 'cdn', ''],
  ['Contabo', 'hosting', ''],
  ['Somebody', 'reserved', ''],
])('converts the iporigin label %s (%s) to %j', (provider, kind, name) => {
  expect(labelOfIporigin({ provider, kind })).toBe(name)
})

it('rejects a truncated file and other files', async () => {
  const labels = indexRanges({ ipv4: [{ start: 1, end: 2, name: 'tor Tor' }], ipv6: [] })
  const whole = encodeAddresses({ head, country: empty, network: empty, labels })
  const line = Buffer.from(`${JSON.stringify(head)}\n`)
  const bodies = [Buffer.from('text'), serialize({ country: 1 }), serialize(1).subarray(0, 3)]
  const damaged = [
    whole.subarray(0, whole.length - 3),
    ...bodies.map((body) => Buffer.concat([line, brotliCompressSync(body)])),
  ]
  for (const file of [...damaged, line, Buffer.from('{}\n'), Buffer.from('nothing')])
    await expect(decodeAddresses(file)).rejects.toThrow()
  await expect(decodeAddresses(whole)).resolves.toMatchObject({ head })
})
