import { type EngineFamily, engineVersionOf } from '../../../infra/challenges/challenges.ts'
import { handshakeQuestion } from '../../../projections/answers/digests.ts'
import type { Platform, UserAgentAlignment } from '../../../schemas/events.ts'
import type { AnswersInput } from './answers.ts'
import type { DocumentState } from './state.ts'

// Identifies TLS clients by their JA4 fingerprint, and compares them with the user agent. The fingerprints of tools and
// some browsers were recorded; those of other browsers are learned from sessions.

interface TlsClient {
  family: string
  product: string | null
}

export type KnownTlsClient = TlsClient &
  ({ kind: 'tool' } | { kind: 'browser'; engine: EngineFamily })

export interface HandshakeFacts {
  /** The client with this TLS fingerprint; null if it is unknown. */
  client: KnownTlsClient | null
  /** Origin of `client`. */
  source: 'recorded' | 'learned' | null
  /** Result of the comparison with the user agent. */
  alignment: UserAgentAlignment
}

const families: Record<EngineFamily, string> = {
  blink: 'chromium',
  gecko: 'firefox',
  webkit: 'webkit',
  webkitgtk: 'webkitgtk',
}
const engines: readonly EngineFamily[] = ['blink', 'gecko', 'webkit', 'webkitgtk']

const browser = (engine: EngineFamily, product: string | null): KnownTlsClient => ({
  kind: 'browser',
  engine,
  family: families[engine],
  product,
})
const tool = (family: string, product: string): KnownTlsClient => ({
  kind: 'tool',
  family,
  product,
})

// Recorded fingerprints (test/fixtures/tls-hellos), of new and resumed connections, by the second and third part of
// JA4. Programs with OpenSSL's defaults share one, so the name is that of the recorded program.
const recorded = new Map([
  ['8daaf6152771_cb7bf5808d99', browser('blink', 'chromium')],
  ['8daaf6152771_e2d80978ab2e', browser('blink', 'chromium')],
  ['86a278354501_3cbfd9057e0d', browser('gecko', 'firefox')],
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

/** Returns the second and third part of a JA4. The first depends on the offered protocols and on SNI. */
export const handshakeClassOf = (ja4: string | null | undefined): string | null =>
  ja4?.slice(ja4.indexOf('_') + 1) ?? null

export const recordedTlsClient = (ja4: string | null | undefined): KnownTlsClient | null =>
  recorded.get(handshakeClassOf(ja4) ?? '') ?? null

interface HandshakeInput
  extends Pick<AnswersInput, 'environment' | 'organizationId' | 'learned' | 'userAgent'> {
  document: DocumentState | null
  platform: Platform
}

export function judgeHandshake({
  document,
  platform,
  userAgent,
  ...sources
}: HandshakeInput): HandshakeFacts {
  const ja4 = document?.ja4
  const recordedClient = recordedTlsClient(ja4)
  const learned = learnedEngines(ja4, sources)
  const claimed = platform === 'web' ? engineVersionOf(userAgent)?.family : undefined
  const client = recordedClient ?? learnedBrowser(learned)
  return {
    client,
    source: recordedClient ? 'recorded' : client && 'learned',
    alignment: claimed && client ? alignmentOf(claimed, client, learned) : 'unknown',
  }
}

function learnedEngines(
  ja4: string | null | undefined,
  { learned, ...scope }: Pick<HandshakeInput, 'environment' | 'organizationId' | 'learned'>,
): EngineFamily[] {
  const handshake = handshakeClassOf(ja4)
  const answers =
    handshake && learned.answersTo({ ...scope, class: handshake, question: handshakeQuestion })
  return answers ? engines.filter((engine) => answers.has(engine)) : []
}

function learnedBrowser([engine, ...others]: EngineFamily[]): KnownTlsClient | null {
  return engine && others.length === 0 ? browser(engine, null) : null
}

// Several engines share a fingerprint behind a TLS-intercepting proxy, so it says nothing about the client. A tool's
// fingerprint with one learned engine stays a mismatch, because an attacker's programs can all claim one engine.
function alignmentOf(
  claimed: EngineFamily,
  client: KnownTlsClient,
  learned: readonly EngineFamily[],
): UserAgentAlignment {
  const possible = new Set(client.kind === 'browser' ? [client.engine, ...learned] : learned)
  if (possible.size > 1) return 'unknown'
  return client.kind === 'browser' && possible.has(claimed) ? 'match' : 'mismatch'
}
