import { describe, expect, it } from 'vitest'
import { ja4Pattern } from '../../../infra/http/handshake.ts'
import recorded from '../../fixtures/tls-hellos/hellos.json' with { type: 'json' }
import { maxHelloBytes, readClientHello } from './client-hello.ts'
import { ja4Of } from './ja4.ts'

const hellos = recorded.map(({ client, ja4, hello }) => ({
  client,
  ja4,
  bytes: Buffer.from(hello, 'base64'),
}))

// What is tried at every byte is tried with these.
const few = hellos.filter(({ client }) => /^(Chromium|curl)/.test(client)).slice(-2)

function ja4(bytes: Buffer): string {
  const reading = readClientHello(bytes)
  return reading.state === 'complete' ? ja4Of(reading.hello) : reading.state
}

const u16 = (value: number) => Buffer.from([value >> 8, value & 0xff])
const vector = (size: 1 | 2, ...parts: Buffer[]) => {
  const all = Buffer.concat(parts)
  return Buffer.concat([size === 1 ? Buffer.from([all.length]) : u16(all.length), all])
}

interface Made {
  version?: number
  suites?: number[]
  extensions?: [type: number, data: Buffer][]
}

function message({ version = 0x0303, suites = [0x1301], extensions }: Made): Buffer {
  const body = Buffer.concat([
    u16(version),
    Buffer.alloc(32),
    vector(1),
    vector(2, ...suites.map(u16)),
    vector(1, Buffer.alloc(1)),
    ...(extensions
      ? [
          vector(
            2,
            ...extensions.map(([type, data]) => Buffer.concat([u16(type), vector(2, data)])),
          ),
        ]
      : []),
  ])
  return Buffer.concat([Buffer.from([1, 0]), u16(body.length), body])
}

const record = (fragment: Buffer) =>
  Buffer.concat([Buffer.from([22, 3, 1]), u16(fragment.length), fragment])
const made = (hello: Made) => ja4(record(message(hello)))
const withAlpn = (...names: Buffer[]): Made => ({
  extensions: [[16, vector(2, ...names.map((name) => vector(1, name)))]],
})

describe('JA4 of recorded hellos', () => {
  it.each(hellos)('$client is what a computation over tshark gives', ({ ja4: expected, bytes }) => {
    expect(ja4(bytes)).toBe(expected)
    expect(expected).toMatch(ja4Pattern)
  })

  const positions = (bytes: Buffer, from: number) =>
    Array.from({ length: bytes.length - from }, (_, n) => n + from)

  it.each(few)('$client in two records, split anywhere', ({ ja4: expected, bytes }) => {
    const whole = bytes.subarray(5)
    const split = (at: number) =>
      Buffer.concat([record(whole.subarray(0, at)), record(whole.subarray(at))])
    const all = new Set(positions(whole, 1).map((at) => ja4(split(at))))
    expect([...all]).toEqual([expected])
  })

  it.each(few)('$client is incomplete until its last byte', ({ bytes }) => {
    const all = new Set(positions(bytes, 0).map((end) => ja4(bytes.subarray(0, end))))
    expect([...all]).toEqual(['incomplete'])
  })

  it.each(few)('$client with one altered byte never throws', ({ bytes }) => {
    const alter = (at: number, value: number) =>
      Buffer.concat([bytes.subarray(0, at), Buffer.from([value]), bytes.subarray(at + 1)])
    const all = [0, 0x7f, 0xff].flatMap((value) =>
      positions(bytes, 0).map((at) => ja4(alter(at, value))),
    )
    expect(
      all.filter((one) => one !== 'incomplete' && one !== 'malformed' && !ja4Pattern.test(one)),
    ).toEqual([])
  })

  it('passes over what follows the hello', () => {
    const [{ bytes, ja4: expected } = { bytes: Buffer.alloc(0), ja4: '' }] = hellos
    expect(ja4(Buffer.concat([bytes, Buffer.from([23, 3, 3, 0, 1, 0])]))).toBe(expected)
  })
})

describe('JA4 of hellos that no client here sends', () => {
  it('has no extensions at all', () => {
    expect(made({ suites: [0x002f] })).toBe('t12i010000_ba72b8082249_000000000000')
  })

  it.each([
    ['older versions by their field', { version: 0x0301 }, /^t10i/],
    [
      'the highest offered version, GREASE aside',
      { extensions: [[43, vector(1, u16(0x7a7a), u16(0x0304))]] },
      /^t13i0101/,
    ],
    ['an unknown version', { version: 0x0505 }, /^t00i/],
    ['more than 99 suites', { suites: Array.from({ length: 120 }, (_, n) => n + 1) }, /^t12i9900/],
    ['nothing but GREASE', { suites: [0x0a0a, 0xfafa] }, /^t12i000000_000000000000_/],
    ['what looks like GREASE and is not', { suites: [0x0a1a, 0x1aaa] }, /^t12i0200/],
    ['a protocol of one character', withAlpn(Buffer.from('x')), /^t12i0101xx/],
    ['a protocol that is no text', withAlpn(Buffer.from([0xab, 0xcd])), /^t12i0101ad/],
    ['the first protocol', withAlpn(Buffer.from('http/1.1'), Buffer.from('h2')), /^t12i0101h1/],
    ['a protocol that ends without a letter', withAlpn(Buffer.from('h/')), /^t12i01016f/],
    ['no protocol in the list', withAlpn(), /^t12i010100/],
  ] satisfies [string, Made, RegExp][])('%s', (_, hello, expected) => {
    expect(made(hello)).toMatch(expected)
  })

  it('is the same in any order of extensions and suites, but not of signatures', () => {
    const signatures = (...list: number[]): [number, Buffer] => [13, vector(2, ...list.map(u16))]
    const one = made({ suites: [1, 2], extensions: [[35, Buffer.alloc(0)], signatures(3, 4)] })
    expect(made({ suites: [2, 1], extensions: [signatures(3, 4), [35, Buffer.alloc(0)]] })).toBe(
      one,
    )
    expect(
      made({ suites: [1, 2], extensions: [[35, Buffer.alloc(0)], signatures(4, 3)] }),
    ).not.toBe(one)
  })
})

describe('what is no hello', () => {
  const inner = message({ extensions: [[43, vector(1, u16(0x0304))]] })
  it.each([
    ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\n')],
    ['an empty record', Buffer.concat([record(Buffer.alloc(0)), record(inner)])],
    ['another handshake message', record(Buffer.concat([Buffer.from([2]), inner.subarray(1)]))],
    ['an alert', Buffer.from([21, 3, 1, 0, 2, 1, 0])],
    ['more than any client sends', record(Buffer.from([1, 0, maxHelloBytes >> 8, 0, 3, 3]))],
    [
      'an odd number of bytes of suites',
      record(Buffer.concat([inner.subarray(0, 40), Buffer.from([1]), inner.subarray(41)])),
    ],
    [
      'a list that is longer than its extension',
      record(message({ extensions: [[43, Buffer.from([9, 3, 4])]] })),
    ],
    [
      'bytes after a list',
      record(message({ extensions: [[13, Buffer.concat([vector(2, u16(1)), u16(2)])]] })),
    ],
  ])('%s', (_, bytes) => {
    expect(ja4(bytes)).toBe('malformed')
  })
})
