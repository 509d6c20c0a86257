import type { UserAgentAlignment } from '../../../schemas/events.ts'
import type { Facts } from './facts.ts'

/** Who is known to begin TLS so. */
export interface KnownHandshake {
  kind: 'browser' | 'tool'
  family: string
  product: string
}

const browser = (family: string, product: string): KnownHandshake => ({ kind: 'browser', family, product })
const tool = (family: string, product: string): KnownHandshake => ({ kind: 'tool', family, product })

// By the second and third part of JA4. The first part says beside these which protocols the program chose to offer, and
// whether it named a host. Each was recorded (test/fixtures/tls-hellos), new and resumed. Several programs with OpenSSL's
// own choices are one: what is named is the one that was recorded.
const known = new Map([
  ['8daaf6152771_cb7bf5808d99', browser('chromium', 'chromium')],
  ['8daaf6152771_e2d80978ab2e', browser('chromium', 'chromium')],
  ['86a278354501_3cbfd9057e0d', browser('firefox', 'firefox')],
  ['e8f1e7e78f70_b26ce05bbdd6', tool('openssl', 'curl')],
  ['e8f1e7e78f70_ee8ba1ecc37f', tool('openssl', 'curl')],
  ['723694b0fccc_899037bd0b8c', tool('gnutls', 'wget')],
  ['b262b3658495_8e6e362c5eac', tool('openssl', 'node')],
  ['b262b3658495_66863fb0a24c', tool('openssl', 'node')],
  ['a33745022dd6_1f22a2ca17c4', tool('openssl', 'node')],
  ['a33745022dd6_dbd39dd1d406', tool('openssl', 'node')],
  ['85036bcba153_d41ae481755e', tool('openssl', 'python')],
  ['e8f1e7e78f70_d41ae481755e', tool('openssl', 'python')],
  ['85036bcba153_b26ce05bbdd6', tool('openssl', 'python')],
  ['db35923f8641_7c76daad20ec', tool('java', 'java')],
  ['db35923f8641_867a32efce91', tool('java', 'java')],
  ['f57a46bbacb6_ab7e3b40a677', tool('go', 'go')],
  ['9dc949149365_97f8aa674fd9', tool('go', 'go')],
])

export function knownHandshake(ja4: string | null | undefined): KnownHandshake | null {
  return known.get(ja4?.slice(ja4.indexOf('_') + 1) ?? '') ?? null
}

const engines: Record<string, string> = { chromium: 'blink', firefox: 'gecko' }

/**
 * Whether what the user agent names begins TLS so. Only the handshake of a tool contradicts a browser: of browsers too few
 * are known, and a proxy of an office that opens TLS has one of its own.
 */
export function alignmentOf({
  document,
  agent,
  platform,
}: Pick<Facts, 'document' | 'agent' | 'platform'>): UserAgentAlignment {
  const handshake = knownHandshake(document?.ja4)
  if (!handshake || platform !== 'web' || agent.engine === 'unknown') return 'unknown'
  if (handshake.kind === 'tool') return 'mismatch'
  return engines[handshake.family] === agent.engine ? 'match' : 'unknown'
}
