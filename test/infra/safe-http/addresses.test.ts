import { describe, expect, it, test } from 'vitest'
import { createAddressRules, webhookUrlProblem } from '../../../infra/safe-http/addresses.ts'

const strict = createAddressRules([])
const loopbackToo = createAddressRules(['127.0.0.0/8'])

describe('a receiver on the internet', () => {
  it.each([
    'https://example.com',
    'https://example.com/hooks?a=b&c=%20',
    'https://example.com:443/',
    'https://example.com:80/',
    'https://example.com:1024/',
    'https://example.com:65535/',
    'https://example.com./',
    'https://a_b.example.com/',
    'https://xn--bcher-kva.example/',
    'https://bücher.example/',
    'HTTPS://EXAMPLE.COM/',
    'https://localhost.example.com/',
    'https://local.com/',
    'https://1.2.3.4.example.com/',
    `https://example.com/${'a'.repeat(1980)}`,
  ])('%s is fine', (url) => {
    expect(webhookUrlProblem(url, strict)).toBeUndefined()
    expect(webhookUrlProblem(url, loopbackToo)).toBeUndefined()
  })
})

const bad: [string, string][] = [
  ['', 'absolute'],
  ['example.com', 'absolute'],
  ['//example.com/', 'absolute'],
  ['https://', 'absolute'],
  ['https://example.com:65536/', 'absolute'],
  ['https://exa<mple.com/', 'absolute'],
  ['https://[fe80::1%25eth0]/', 'absolute'],
  ['https://1.2.3.4.5/', 'absolute'],
  ['https://256.1.1.1/', 'absolute'],
  [' https://example.com/', 'white space'],
  ['https://example.com/ ', 'white space'],
  ['https://exam\tple.com/', 'white space'],
  ['https://example.com/\u0000', 'white space'],
  ['https:\\\\example.com\\', 'backslash'],
  ['https://example.com\\@127.0.0.1/', 'backslash'],
  ['ftp://example.com/', 'https'],
  ['ws://example.com/', 'https'],
  ['file:///etc/passwd', 'https'],
  ['javascript:alert(1)', 'https'],
  ['data:text/plain,x', 'https'],
  ['https://user@example.com/', 'user name'],
  ['https://:pass@example.com/', 'user name'],
  ['https://example.com@127.0.0.1/', 'user name'],
  ['https://example.com/#part', 'fragment'],
  ['https://example.com/#', 'fragment'],
  ['https://example.com:0/', 'port'],
  ['https://example.com:22/', 'port'],
  ['https://example.com:81/', 'port'],
  ['https://example.com:1023/', 'port'],
  ['https://example..com/', 'valid name'],
  ['https://.example.com/', 'valid name'],
  ['https://example.com../', 'valid name'],
  [`https://${'a.'.repeat(150)}com/`, 'valid name'],
  ['https://8.8.8.8/', 'IP address'],
  ['https://[2001:4860:4860::8888]/', 'IP address'],
  [`https://example.com/${'a'.repeat(1981)}`, '2000'],
  [`https://example.com/${'ä'.repeat(900)}`, '2000'],
]

describe('a URL that nobody can use', () => {
  it.each(bad)('%j is refused, because of: %s', (url, word) => {
    expect(webhookUrlProblem(url, strict)).toContain(word)
    expect(webhookUrlProblem(url, loopbackToo)).toContain(word)
  })
})

describe('without exceptions', () => {
  it.each([
    ['http://example.com/', 'https'],
    ['https://localhost/', 'this machine'],
    ['https://LOCALHOST:8443/', 'this machine'],
    ['https://localhost./', 'this machine'],
    ['https://app.localhost/', 'this machine'],
    ['https://ｌocalhost/', 'this machine'],
    ['https://intranet/', 'public internet'],
    ['https://printer.local/', 'public internet'],
    ['https://metadata.google.internal/', 'public internet'],
    ['https://router.home.arpa/', 'public internet'],
    ['https://router.lan./', 'public internet'],
    ['https://expyuzz4wqqyqhjn.onion/', 'public internet'],
  ])('%s is refused', (url, word) => {
    expect(webhookUrlProblem(url, strict)).toContain(word)
  })
})

describe('with an exception for 127.0.0.0/8', () => {
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
  ])('%s is fine', (url) => {
    expect(webhookUrlProblem(url, loopbackToo)).toBeUndefined()
  })

  it.each(['http://10.0.0.1/', 'http://[::1]/', 'http://169.254.169.254/', 'http://0/'])(
    '%s is refused',
    (url) => {
      expect(webhookUrlProblem(url, loopbackToo)).toContain('IP address')
    },
  )

  it('localhost is refused where the exception is for another network', () => {
    const rules = createAddressRules(['10.0.0.0/8'])
    expect(webhookUrlProblem('http://localhost/', rules)).toContain('this machine')
    expect(webhookUrlProblem('http://10.1.2.3/', rules)).toBeUndefined()
  })
})

const none = createAddressRules([], () => [])

/**
 * First and last address of every range of IANA's special-purpose registries (iana-ipv4-special-registry,
 * iana-ipv6-special-registry, both as of 2025), multicast, deprecated ranges, and the addresses of cloud metadata.
 */
const special: [string, string, string][] = [
  ['this network', '0.0.0.0', '0.255.255.255'],
  ['private', '10.0.0.0', '10.255.255.255'],
  ['carrier-grade NAT', '100.64.0.0', '100.127.255.255'],
  ['Alibaba metadata', '100.100.100.200', '100.100.100.200'],
  ['loopback', '127.0.0.0', '127.255.255.255'],
  ['link-local', '169.254.0.0', '169.254.255.255'],
  ['metadata', '169.254.169.254', '169.254.170.2'],
  ['private', '172.16.0.0', '172.31.255.255'],
  ['IETF protocol assignments', '192.0.0.0', '192.0.0.255'],
  ['DS-Lite', '192.0.0.1', '192.0.0.7'],
  ['port control, TURN anycast', '192.0.0.9', '192.0.0.10'],
  ['NAT64 discovery', '192.0.0.170', '192.0.0.171'],
  ['Oracle metadata', '192.0.0.192', '192.0.0.192'],
  ['documentation', '192.0.2.0', '192.0.2.255'],
  ['AS112', '192.31.196.0', '192.31.196.255'],
  ['AMT', '192.52.193.0', '192.52.193.255'],
  ['6to4 relay', '192.88.99.0', '192.88.99.255'],
  ['private', '192.168.0.0', '192.168.255.255'],
  ['AS112 delegation', '192.175.48.0', '192.175.48.255'],
  ['benchmarking', '198.18.0.0', '198.19.255.255'],
  ['documentation', '198.51.100.0', '198.51.100.255'],
  ['documentation', '203.0.113.0', '203.0.113.255'],
  ['multicast', '224.0.0.0', '239.255.255.255'],
  ['reserved', '240.0.0.0', '255.255.255.254'],
  ['broadcast', '255.255.255.255', '255.255.255.255'],
  ['Azure host', '168.63.129.16', '168.63.129.16'],
  ['unspecified, loopback', '::', '::1'],
  ['IPv4-compatible', '::0.0.0.2', '::255.255.255.255'],
  ['IPv4-compatible in hex', '::7f00:1', '::808:808'],
  ['IPv4-mapped', '::ffff:0:0', '::ffff:ffff:ffff'],
  ['IPv4-mapped of a public address', '::ffff:8.8.8.8', '::FFFF:808:808'],
  ['IPv4-translated', '::ffff:0:0:0', '::ffff:0:ffff:ffff'],
  ['NAT64', '64:ff9b::', '64:ff9b::ffff:ffff'],
  ['local NAT64', '64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
  ['discard', '100::', '100::ffff:ffff:ffff:ffff'],
  ['dummy prefix', '100:0:0:1::', '100:0:0:1:ffff:ffff:ffff:ffff'],
  ['before global unicast', '200::', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['IETF protocol assignments', '2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['Teredo', '2001::1', '2001:0:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['port control, TURN, DNS-SD anycast', '2001:1::1', '2001:1::3'],
  ['benchmarking', '2001:2::', '2001:2:0:ffff:ffff:ffff:ffff:ffff'],
  ['AMT', '2001:3::', '2001:3:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['AS112', '2001:4:112::', '2001:4:112:ffff:ffff:ffff:ffff:ffff'],
  ['deprecated ORCHID', '2001:10::', '2001:1f:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['ORCHIDv2', '2001:20::', '2001:2f:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['drone remote id', '2001:30::', '2001:3f:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['documentation', '2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['6to4', '2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['AS112 delegation', '2620:4f:8000::', '2620:4f:8000:ffff:ffff:ffff:ffff:ffff'],
  ['documentation', '3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['after global unicast', '4000::', '5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['segment routing', '5f00::', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['not assigned', '6000::', 'fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['unique local', 'fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['AWS metadata', 'fd00:ec2::254', 'fd00:ec2::254'],
  ['link-local', 'fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['link-local with a zone', 'fe80::1%lo', 'fe80::1%1'],
  ['public with a zone', '2001:4860:4860::8888%eth0', '2001:4860:4860::8888%1'],
  ['site-local', 'fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['multicast', 'ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
]

describe('special ranges', () => {
  it.each(special)('%s: %s and %s are refused', (_what, first, last) => {
    expect([first, last].filter((ip) => none.isAllowed(ip) || none.isException(ip))).toEqual([])
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
  ])('their neighbours %s and %s are not', (before, after) => {
    expect(none.isAllowed(before)).toBe(true)
    expect(none.isAllowed(after)).toBe(true)
    expect(none.isException(before)).toBe(false)
  })

  it.each([
    '',
    'example.com',
    '8.8.8',
    '8.8.8.8/32',
    '010.8.8.8',
    '0x8080808',
    '134744072',
    ' 8.8.8.8',
  ])('%j is no address in full', (text) => {
    expect(none.isAllowed(text)).toBe(false)
  })
})

describe('exceptions', () => {
  const rules = createAddressRules([
    '127.0.0.0/8',
    '10.1.0.0/16',
    'fd00::/64',
    '::1/128',
    '::ffff:172.16.0.0/112',
  ])

  it.each([
    '127.0.0.1',
    '10.1.255.255',
    'fd00::1',
    '::1',
    '::ffff:127.0.0.1',
    '::FFFF:7f00:1',
    '172.16.3.4',
  ])('%s is one', (ip) => {
    expect(rules.isException(ip)).toBe(true)
    expect(rules.isAllowed(ip)).toBe(true)
  })

  it.each([
    '10.2.0.0',
    '::',
    'fd00:0:0:1::',
    '::ffff:10.2.0.0',
    '::127.0.0.1',
    'fd00::1%lo',
    '127.1',
    '172.17.0.0',
  ])('%s is none', (ip) => {
    expect(rules.isException(ip)).toBe(false)
    expect(rules.isAllowed(ip)).toBe(false)
  })

  it('say whether there are any', () => {
    expect(rules.hasExceptions).toBe(true)
    expect(none.hasExceptions).toBe(false)
  })

  it('have to be CIDRs', () => {
    expect(() => createAddressRules(['10.0.0.0'])).toThrow()
  })
})

test('addresses of this machine are refused though they are public, unless they are an exception', () => {
  const own = () => ['8.8.8.8', '2001:4860:4860::8888']
  expect(createAddressRules([], own).isAllowed('8.8.8.8')).toBe(false)
  expect(createAddressRules([], own).isAllowed('2001:4860:4860::8888')).toBe(false)
  expect(createAddressRules([], own).isAllowed('8.8.4.4')).toBe(true)
  expect(createAddressRules(['8.8.8.8/32'], own).isAllowed('8.8.8.8')).toBe(true)
})
