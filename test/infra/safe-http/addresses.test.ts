import { describe, expect, it, test } from 'vitest'
import { createAddressRules, webhookUrlProblem } from '../../../infra/safe-http/addresses.ts'
import { specialRanges } from './special-ranges.ts'

const strict = createAddressRules([])
const withLoopback = createAddressRules(['127.0.0.0/8'])

it.each([
  'https://example.com',
  'https://example.com/hooks?a=b&c=%20',
  'https://example.com:80/',
  'https://example.com:1024/',
  'https://example.com:65535/',
  'https://example.com./',
  'https://a_b.example.com/',
  'https://bücher.example/',
  'HTTPS://EXAMPLE.COM/',
  'https://localhost.example.com/',
  'https://local.com/',
  'https://1.2.3.4.example.com/',
  `https://example.com/${'a'.repeat(1980)}`,
])('accepts %s', (url) => {
  expect(webhookUrlProblem(url, strict)).toBeUndefined()
  expect(webhookUrlProblem(url, withLoopback)).toBeUndefined()
})

const bad: [string, string][] = [
  ['', 'absolute'],
  ['example.com', 'absolute'],
  ['https://', 'absolute'],
  ['https://example.com:65536/', 'absolute'],
  ['https://[fe80::1%25eth0]/', 'absolute'],
  ['https://256.1.1.1/', 'absolute'],
  [' https://example.com/', 'white space'],
  ['https://exam\tple.com/', 'white space'],
  ['https://example.com/\u0000', 'white space'],
  ['https://example.com\\@127.0.0.1/', 'backslash'],
  ['ftp://example.com/', 'https'],
  ['file:///etc/passwd', 'https'],
  ['javascript:alert(1)', 'https'],
  ['https://user@example.com/', 'user name'],
  ['https://:pass@example.com/', 'user name'],
  ['https://example.com@127.0.0.1/', 'user name'],
  ['https://example.com/#part', 'fragment'],
  ['https://example.com/#', 'fragment'],
  ['https://example.com:0/', 'port'],
  ['https://example.com:22/', 'port'],
  ['https://example.com:1023/', 'port'],
  ['https://example..com/', 'valid name'],
  ['https://example.com../', 'valid name'],
  [`https://${'a.'.repeat(150)}com/`, 'valid name'],
  ['https://8.8.8.8/', 'IP address'],
  ['https://[2001:4860:4860::8888]/', 'IP address'],
  [`https://example.com/${'a'.repeat(1981)}`, '2000'],
  [`https://example.com/${'ä'.repeat(900)}`, '2000'],
]

it.each(bad)('rejects %j: %s', (url, word) => {
  expect(webhookUrlProblem(url, strict)).toContain(word)
  expect(webhookUrlProblem(url, withLoopback)).toContain(word)
})

it.each([
  ['http://example.com/', 'https'],
  ['https://localhost/', 'this machine'],
  ['https://LOCALHOST:8443/', 'this machine'],
  ['https://app.localhost/', 'this machine'],
  ['https://ｌocalhost/', 'this machine'],
  ['https://intranet/', 'public internet'],
  ['https://printer.local/', 'public internet'],
  ['https://metadata.google.internal/', 'public internet'],
  ['https://router.home.arpa/', 'public internet'],
  ['https://router.lan./', 'public internet'],
  ['https://expyuzz4wqqyqhjn.onion/', 'public internet'],
])('rejects %s without allowed networks', (url, word) => {
  expect(webhookUrlProblem(url, strict)).toContain(word)
})

describe('with the allowed network 127.0.0.0/8', () => {
  it.each([
    'http://127.0.0.1:9000/hook',
    'https://127.0.0.1/',
    'http://0x7f.1/',
    'http://[::ffff:127.0.0.1]/',
    'http://localhost:9000/',
    'http://app.localhost/',
    'http://receiver/',
    'http://receiver.internal:8080/',
    'http://example.com/',
  ])('accepts %s', (url) => {
    expect(webhookUrlProblem(url, withLoopback)).toBeUndefined()
  })

  it.each(['http://10.0.0.1/', 'http://[::1]/', 'http://169.254.169.254/', 'http://0/'])(
    'rejects %s',
    (url) => {
      expect(webhookUrlProblem(url, withLoopback)).toContain('IP address')
    },
  )

  it('rejects localhost if another network is allowed', () => {
    const rules = createAddressRules(['10.0.0.0/8'])
    expect(webhookUrlProblem('http://localhost/', rules)).toContain('this machine')
    expect(webhookUrlProblem('http://10.1.2.3/', rules)).toBeUndefined()
  })
})

const publicOnly = createAddressRules([], () => [])

describe('special ranges', () => {
  it.each(specialRanges)('rejects %s: %s and %s', (_range, first, last) => {
    expect(
      [first, last].filter((ip) => publicOnly.isAllowed(ip) || publicOnly.isInAllowedNetwork(ip)),
    ).toEqual([])
  })

  it.each([
    ['9.255.255.255', '11.0.0.0'],
    ['100.63.255.255', '100.128.0.0'],
    ['126.255.255.255', '128.0.0.0'],
    ['169.253.255.255', '169.255.0.0'],
    ['172.15.255.255', '172.32.0.0'],
    ['192.0.1.0', '192.0.3.0'],
    ['192.167.255.255', '192.169.0.0'],
    ['198.17.255.255', '198.20.0.0'],
    ['168.63.129.15', '168.63.129.17'],
    ['1.0.0.0', '223.255.255.255'],
    ['2001:200::', '2001:db7:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2001:db9::', '2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2003::', '3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2606:4700:4700::1111', '2A00:1450:4001:80b::200e'],
  ])('allows their neighbors %s and %s', (before, after) => {
    expect([publicOnly.isAllowed(before), publicOnly.isAllowed(after)]).toEqual([true, true])
  })

  it.each(['', 'example.com', '8.8.8', '8.8.8.8/32', '010.8.8.8', '0x8080808', '134744072'])(
    'rejects non-canonical %j',
    (text) => expect(publicOnly.isAllowed(text)).toBe(false),
  )
})

describe('allowed networks', () => {
  const rules = createAddressRules([
    '127.0.0.0/8',
    '10.1.0.0/16',
    'fd00::/64',
    '::1/128',
    '::ffff:172.16.0.0/112',
  ])

  it.each([
    ['127.0.0.1', true],
    ['10.1.255.255', true],
    ['fd00::1', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
    ['::FFFF:7f00:1', true],
    ['172.16.3.4', true],
    ['10.2.0.0', false],
    ['::', false],
    ['fd00:0:0:1::', false],
    ['::ffff:10.2.0.0', false],
    ['::127.0.0.1', false],
    ['fd00::1%lo', false],
    ['127.1', false],
    ['172.17.0.0', false],
  ])('%s: %s', (ip, expected) => {
    expect([rules.isInAllowedNetwork(ip), rules.isAllowed(ip)]).toEqual([expected, expected])
  })

  it('must be CIDRs', () => {
    expect(() => createAddressRules(['10.0.0.0'])).toThrow()
  })
})

test('rejects public addresses of this machine unless their network is allowed', () => {
  const own = () => ['8.8.8.8', '2001:4860:4860::8888']
  expect(createAddressRules([], own).isAllowed('8.8.8.8')).toBe(false)
  expect(createAddressRules([], own).isAllowed('2001:4860:4860::8888')).toBe(false)
  expect(createAddressRules([], own).isAllowed('8.8.4.4')).toBe(true)
  expect(createAddressRules(['8.8.8.8/32'], own).isAllowed('8.8.8.8')).toBe(true)
})
