import { networkInterfaces } from 'node:os'

/** Every way in which a URL can say an IPv4 address, and the IPv6 addresses that carry it. */
export function notationsOf(ip: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = ip.split('.').map(Number)
  const number = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
  const hex = (value: number) => `0x${value.toString(16)}`
  const octal = (value: number) => `0${value.toString(8)}`
  const groups = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
  const inverted = `${(((a << 8) | b) ^ 0xffff).toString(16)}:${(((c << 8) | d) ^ 0xffff).toString(16)}`
  const wide = (text: string) =>
    text.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))
  const percent = (text: string) =>
    text.replace(/./g, (character) => `%${character.charCodeAt(0).toString(16)}`)
  return [
    ip,
    `${ip}.`,
    String(number),
    hex(number),
    hex(number).toUpperCase(),
    octal(number),
    [a, b, c, d].map(hex).join('.'),
    [a, b, c, d].map(octal).join('.'),
    [octal(a), b, hex(c), d].join('.'),
    `${a}.${((b << 16) | (c << 8) | d) >>> 0}`,
    `${a}.${b}.${(c << 8) | d}`,
    `000${octal(a)}.${b}.${c}.${d}`,
    wide(ip),
    ip.replaceAll('.', '。'),
    ip.replaceAll('.', '｡'),
    percent(ip),
    percent(String(number)),
    `public.example@${ip}`,
    `[::ffff:${ip}]`,
    `[::ffff:${groups}]`,
    `[0:0:0:0:0:FFFF:${groups}]`,
    `[::${ip}]`,
    `[::ffff:0:${ip}]`,
    `[64:ff9b::${ip}]`,
    `[64:ff9b:1::${ip}]`,
    `[2002:${groups}::1]`,
    `[2001:0:4136:e378:8000:63bf:${inverted}]`,
    `[fe80::5efe:${ip}]`,
  ]
}

/**
 * First and last address of every range of IANA's special-purpose registries (iana-ipv4-special-registry,
 * iana-ipv6-special-registry, both as of 2025), multicast, deprecated ranges, and the addresses of cloud metadata.
 */
export const specialRanges: [string, string, string][] = [
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

const specialAddresses = specialRanges
  .flatMap(([, first, last]) => [first, last])
  .filter((ip) => !ip.includes('%'))

export const specialHosts = [
  ...specialAddresses.map((ip) => (ip.includes(':') ? `[${ip}]` : ip)),
  '[0000:0000:0000:0000:0000:0000:0000:0001]',
  '[fe80::1%25lo]',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'a.localhost',
  'ｌocalhost',
  'loc%61lhost',
  '0',
  '127.1',
  '1.1.1.1.localhost',
]

/** All addresses by which this machine reaches itself; an IPv6 one with a scope cannot stand in a URL. */
export function ownHosts(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return all
    .filter(({ address }) => !address.startsWith('fe80'))
    .map(({ address, family }) => (family === 'IPv6' ? `[${address}]` : address))
}

/** Answers of DNS that must lead nowhere, by the first label of the name. */
export const badAnswers: Record<string, string[]> = {
  ...Object.fromEntries(specialAddresses.map((ip, index) => [`special-${index}`, [ip]])),
  'mixed-first': ['127.0.0.1', '8.8.8.8'],
  'mixed-last': ['8.8.8.8', '127.0.0.1'],
  'mixed-many': ['8.8.8.8', '8.8.4.4', '1.1.1.1', '9.9.9.9', '10.0.0.1'],
  'mixed-six': ['8.8.8.8', '::1'],
  'mixed-six-only': ['2001:4860:4860::8888', '::1'],
  'mixed-mapped': ['8.8.8.8', '::ffff:127.0.0.1'],
  'mixed-four': ['127.0.0.1', '2001:4860:4860::8888'],
}
