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

/** One address at least of every range that is not the public internet. */
export const specialHosts = [
  '0.0.0.1',
  '10.0.0.1',
  '100.64.0.1',
  '100.100.100.200',
  '127.0.0.2',
  '127.255.255.254',
  '168.63.129.16',
  '169.254.0.1',
  '169.254.170.2',
  '172.16.0.1',
  '172.31.255.254',
  '192.0.0.1',
  '192.0.0.192',
  '192.0.2.1',
  '192.31.196.1',
  '192.52.193.1',
  '192.88.99.1',
  '192.175.48.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '239.255.255.250',
  '240.0.0.1',
  '255.255.255.255',
  '[::]',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[0000:0000:0000:0000:0000:0000:0000:0001]',
  '[::2]',
  '[100::1]',
  '[100:0:0:1::1]',
  '[2001::1]',
  '[2001:1::1]',
  '[2001:2::1]',
  '[2001:3::1]',
  '[2001:4:112::1]',
  '[2001:10::1]',
  '[2001:20::1]',
  '[2001:30::1]',
  '[2001:db8::1]',
  '[2620:4f:8000::1]',
  '[3fff::1]',
  '[4000::1]',
  '[5f00::1]',
  '[fc00::1]',
  '[fd00:ec2::254]',
  '[fe80::1]',
  '[fe80::1%25lo]',
  '[fec0::1]',
  '[ff02::1]',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'a.localhost',
  'ｌocalhost',
  'loc%61lhost',
  '0',
  '127.1',
  '127.0.1',
  '1.1.1.1.localhost',
]

/** All addresses by which this machine reaches itself; an IPv6 one with a scope cannot stand in a URL. */
export function ownHosts(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return all
    .filter(({ address }) => !address.startsWith('fe80'))
    .map(({ address, family }) => (family === 'IPv6' ? `[${address}]` : address))
}

/** What DNS can say that must lead nowhere, by name. Half of it hides a bad address among good ones. */
export const badAnswers: Record<string, string[]> = {
  loopback: ['127.0.0.1'],
  'other-loopback': ['127.9.9.9'],
  zero: ['0.0.0.0'],
  private10: ['10.0.0.1'],
  private172: ['172.20.0.1'],
  private192: ['192.168.0.1'],
  metadata: ['169.254.169.254'],
  cgnat: ['100.64.0.1'],
  azure: ['168.63.129.16'],
  broadcast: ['255.255.255.255'],
  multicast: ['224.0.0.1'],
  loopback6: ['::1'],
  unspecified6: ['::'],
  mapped: ['::ffff:127.0.0.1'],
  'mapped-private': ['::ffff:10.0.0.1'],
  'mapped-public': ['::ffff:8.8.8.8'],
  compatible: ['::127.0.0.1'],
  translated: ['::ffff:0:127.0.0.1'],
  nat64: ['64:ff9b::7f00:1'],
  'local-nat64': ['64:ff9b:1::7f00:1'],
  sixtofour: ['2002:7f00:1::1'],
  teredo: ['2001:0:4136:e378:8000:63bf:80ff:fffe'],
  unique: ['fd00::1'],
  'link-local': ['fe80::1'],
  'site-local': ['fec0::1'],
  'mixed-first': ['127.0.0.1', '8.8.8.8'],
  'mixed-last': ['8.8.8.8', '127.0.0.1'],
  'mixed-many': ['8.8.8.8', '8.8.4.4', '1.1.1.1', '9.9.9.9', '10.0.0.1'],
  'mixed-six': ['8.8.8.8', '::1'],
  'mixed-six-only': ['2001:4860:4860::8888', '::1'],
  'mixed-mapped': ['8.8.8.8', '::ffff:127.0.0.1'],
  'mixed-four': ['127.0.0.1', '2001:4860:4860::8888'],
}
