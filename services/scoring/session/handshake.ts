import { type EngineFamily, engineVersionOf } from '../../../infra/challenges/challenges.ts'
import { handshakeQuestion } from '../../../projections/answers/digests.ts'
import type { Platform, UserAgentAlignment } from '../../../schemas/events.ts'
import type { AnswersInput } from './answers.ts'
import type { DocumentState } from './state.ts'

/** A program, or an engine of browsers, that is known to begin TLS in some way. */
interface Speaker {
  family: string
  product: string | null
}

export type KnownHandshake = Speaker &
  ({ kind: 'tool' } | { kind: 'browser'; engine: EngineFamily })

/** How the client began TLS, and whether what the user agent names does so. */
export interface HandshakeFacts {
  known: KnownHandshake | null
  /** Whether a recorded program or the log says who begins TLS so; null where nobody does. */
  source: 'recorded' | 'learned' | null
  alignment: UserAgentAlignment
}

const families: Record<EngineFamily, string> = {
  blink: 'chromium',
  gecko: 'firefox',
  webkit: 'webkit',
  webkitgtk: 'webkitgtk',
}
const engines: readonly EngineFamily[] = ['blink', 'gecko', 'webkit', 'webkitgtk']

const browser = (engine: EngineFamily, product: string | null): KnownHandshake => ({
  kind: 'browser',
  engine,
  family: families[engine],
  product,
})
const tool = (family: string, product: string): KnownHandshake => ({
  kind: 'tool',
  family,
  product,
})

// By the second and third part of JA4. The first part says beside these which protocols the program chose to offer, and
// whether it named a host. Each was recorded (test/fixtures/tls-hellos), new and resumed. Several programs with OpenSSL's
// own choices are one: what is named is the one that was recorded.
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

/** The second and third part of JA4: what of it is the same over HTTP/1.1 and HTTP/2, and for an address without a name. */
export const handshakeClassOf = (ja4: string | null | undefined): string | null =>
  ja4?.slice(ja4.indexOf('_') + 1) ?? null

export const recordedHandshake = (ja4: string | null | undefined): KnownHandshake | null =>
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
  ...by
}: HandshakeInput): HandshakeFacts {
  const ja4 = document?.ja4
  const program = recordedHandshake(ja4)
  const seen = learnedEngines(ja4, by)
  const claimed = platform === 'web' ? engineVersionOf(userAgent)?.family : undefined
  const known = program ?? learnedBrowser(seen)
  return {
    known,
    source: program ? 'recorded' : known && 'learned',
    alignment: claimed && known ? alignmentOf(claimed, known, seen) : 'unknown',
  }
}

function learnedEngines(
  ja4: string | null | undefined,
  { learned, ...of }: Pick<HandshakeInput, 'environment' | 'organizationId' | 'learned'>,
): EngineFamily[] {
  const handshake = handshakeClassOf(ja4)
  const right = handshake && learned.right({ ...of, class: handshake, question: handshakeQuestion })
  return right ? engines.filter((engine) => right.has(engine)) : []
}

function learnedBrowser([engine, ...others]: EngineFamily[]): KnownHandshake | null {
  return engine && others.length === 0 ? browser(engine, null) : null
}

// What several engines speak is a proxy that opens TLS, and says nothing of who is behind it. One engine alone does not
// make a tool's handshake its own, because whoever sends programs may let all of them claim the same.
function alignmentOf(
  claimed: EngineFamily,
  known: KnownHandshake,
  seen: readonly EngineFamily[],
): UserAgentAlignment {
  const speakers = new Set(known.kind === 'browser' ? [known.engine, ...seen] : seen)
  if (speakers.size > 1) return 'unknown'
  return known.kind === 'browser' && speakers.has(claimed) ? 'match' : 'mismatch'
}
