import { createHash } from 'node:crypto'
import type { ClientHello } from './client-hello.ts'

const serverName = 0
const alpn = 16

const versionNames = new Map([
  [0x0304, '13'],
  [0x0303, '12'],
  [0x0302, '11'],
  [0x0301, '10'],
  [0x0300, 's3'],
  [0x0002, 's2'],
])

/**
 * The JA4 fingerprint of a hello over TCP, by FoxIO's technical details of JA4 (github.com/FoxIO-LLC/ja4, BSD-3-Clause).
 * It is the same however a client orders its cipher suites and extensions.
 */
export function ja4Of(hello: ClientHello): string {
  const suites = withoutGrease(hello.cipherSuites)
  const extensions = withoutGrease(hello.extensions)
  const signatures = withoutGrease(hello.signatureAlgorithms)
  const named = extensions.filter((type) => type !== serverName && type !== alpn)
  const start = `t${versionOf(hello)}${extensions.includes(serverName) ? 'd' : 'i'}`
  const counts = `${count(suites)}${count(extensions)}${protocolOf(hello.alpn[0])}`
  const last = [
    hexes(named).sort().join(','),
    ...(signatures.length > 0 ? [hexes(signatures).join(',')] : []),
  ]
  return `${start}${counts}_${digest(hexes(suites).sort().join(','))}_${named.length > 0 ? digest(last.join('_')) : digest('')}`
}

function versionOf({ supportedVersions, legacyVersion }: ClientHello): string {
  const offered = withoutGrease(supportedVersions)
  return versionNames.get(offered.length > 0 ? Math.max(...offered) : legacyVersion) ?? '00'
}

// First and last character of the first protocol, or of its hexadecimal form where one of these is neither letter nor digit.
function protocolOf(first: Buffer | undefined): string {
  if (!first || first.length === 0) return '00'
  const text = first.toString('latin1')
  const isPlain = [text.at(0), text.at(-1)].every((one) => /^[0-9A-Za-z]$/.test(one ?? ''))
  const written = isPlain ? text : first.toString('hex')
  return `${written.at(0)}${written.at(-1)}`
}

const count = (list: readonly number[]) => String(Math.min(list.length, 99)).padStart(2, '0')
const hexes = (list: readonly number[]) => list.map((one) => one.toString(16).padStart(4, '0'))

function digest(text: string): string {
  return text === '' ? '000000000000' : createHash('sha256').update(text).digest('hex').slice(0, 12)
}

// RFC 8701: values that clients send so that servers keep passing over what they do not know.
function withoutGrease(list: readonly number[]): number[] {
  return list.filter((one) => (one & 0x0f0f) !== 0x0a0a || one >> 8 !== (one & 0xff))
}
