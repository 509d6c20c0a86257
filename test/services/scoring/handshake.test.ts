import { createSecretKey } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import {
  createLearnedAnswers,
  type LearnedAnswers,
  noLearnedAnswers,
} from '../../../projections/answers/learned.ts'
import { answerRows, mergeAnswers } from '../../../projections/answers/projection.ts'
import type { SessionScored } from '../../../schemas/events.ts'
import { judgeHandshake, recordedTlsClient } from '../../../services/scoring/session/handshake.ts'
import hellos from '../../fixtures/tls-hellos/hellos.json' with { type: 'json' }
import { visitorLink } from '../../support/session-scored.ts'
import { opened, organizationId, startedAt, testSession } from './support/events.ts'
import { naturalInput, naturalKeys, naturalMouse } from './support/natural-input.ts'
import {
  decisionAbout,
  evaluateState,
  scored,
  signalsOf,
  stateAfter,
  stateOf,
} from './support/sessions.ts'
import {
  agentOf,
  type Client,
  desktopChrome,
  desktopFirefox,
  desktopSafari,
  headlessChrome,
  withParts,
} from './support/snapshots.ts'
import { taught } from './support/taught.ts'

const go = 't13d1312h2_f57a46bbacb6_ab7e3b40a677'
const chromium = 't13d1517h2_8daaf6152771_cb7bf5808d99'
const firefox = 't13d1617h2_86a278354501_3cbfd9057e0d'
/** Not a recorded fingerprint. */
const unrecorded = 't13d2014h2_a09f3c656075_14788d8d241b'
const quic = 'q13d0312h3_55b375c5d22e_06cda9e17597'

const chromeAgent = agentOf(desktopChrome)
const firefoxAgent = agentOf(desktopFirefox)
const safariAgent =
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15'

const speaking = (...engines: string[]): LearnedAnswers => ({
  ...noLearnedAnswers,
  answersTo: ({ question }) => (question === 'handshake' ? new Set(engines) : undefined),
})

describe('a TLS fingerprint', () => {
  it.each(hellos)('of $client is identified as $family', ({ family, ja4 }) => {
    const isBrowser = family === 'chromium' || family === 'firefox'
    expect(recordedTlsClient(ja4)).toMatchObject({
      kind: isBrowser ? 'browser' : 'tool',
      product: family,
    })
  })

  const judged = ({
    ja4 = go as string | null,
    userAgent = chromeAgent,
    learned = noLearnedAnswers,
    isApp = false,
  }) => {
    const [document = null] = stateAfter(
      opened(testSession('aligned', { document: { ja4 } })),
    ).documents
    const platform = isApp ? 'ios' : 'web'
    return judgeHandshake({
      document,
      platform,
      userAgent,
      learned,
      environment: 'live',
      organizationId,
    })
  }
  const sentOverHttp1 = (ja4: string) => ja4.replace('h2_', 'h1_')

  it.each([
    ['match', { ja4: chromium }],
    ['match', { ja4: sentOverHttp1(chromium) }],
    ['match', { ja4: chromium.replace('t13d', 't13i') }],
    ['match', { ja4: firefox, userAgent: firefoxAgent }],
    ['mismatch', {}],
    ['mismatch', { ja4: sentOverHttp1(go) }],
    ['mismatch', { userAgent: safariAgent }],
    ['mismatch', { ja4: firefox }],
    ['unknown', { ja4: unrecorded }],
    ['unknown', { ja4: quic }],
    ['unknown', { ja4: null }],
    ['unknown', { userAgent: 'Go-http-client/2.0' }],
    ['unknown', { isApp: true }],
  ])('is %s for %j before anything is learned', (expected, given) => {
    expect(judged(given).alignment).toBe(expected)
  })

  it.each([
    ['match', ['webkit'], { ja4: unrecorded, userAgent: safariAgent }],
    ['match', ['blink'], { ja4: quic }],
    ['mismatch', ['webkit'], { ja4: unrecorded }],
    ['mismatch', ['blink'], {}],
    ['unknown', ['blink', 'gecko'], {}],
    ['unknown', ['blink', 'gecko'], { userAgent: safariAgent }],
    ['unknown', ['blink', 'webkit'], { ja4: unrecorded }],
    ['unknown', ['gecko'], { ja4: chromium }],
    ['unknown', ['blink'], { ja4: null }],
    ['unknown', ['blink'], { ja4: unrecorded, isApp: true }],
  ])('is %s if it was learned for %j, for %j', (expected, engines, given) => {
    expect(judged({ ...given, learned: speaking(...engines) }).alignment).toBe(expected)
  })

  it('identifies the engine if it was learned for a single one', () => {
    const webkit = { learned: speaking('webkit'), ja4: unrecorded }
    expect(judged(webkit)).toMatchObject({
      source: 'learned',
      client: { family: 'webkit', product: null },
    })
    const shared = { learned: speaking('webkit', 'blink'), ja4: unrecorded }
    expect(judged(shared)).toMatchObject({ source: null, client: null })
  })
})

describe('a browser with the TLS fingerprint of a tool', () => {
  // Human input, behind a TLS-intercepting proxy.
  const behavior = { mouse: naturalMouse, keyboard: naturalKeys }

  const decision = (ja4: string | null, input?: object) =>
    decisionAbout(stateOf(testSession('spoken', { document: { ja4 } }), input))

  it('is inconclusive', () => {
    expect(decision(null).verdict).toBe('human')
    expect(decision(go)).toMatchObject({
      verdict: 'inconclusive',
      connection_fingerprint: {
        ja4: { family: 'go', confidence: 'exact' },
        user_agent_alignment: 'mismatch',
      },
      runtime_integrity: { identity_spoofing_suspected: 'elevated' },
    })
  })

  it('is human with natural input', () => {
    expect(decision(go, behavior).verdict).toBe('human')
  })

  it("does not change the score if the fingerprint is the browser's own", () => {
    const { risk_score, connection_fingerprint } = decision(chromium)
    expect(risk_score).toBe(decision(null).risk_score)
    expect(connection_fingerprint.user_agent_alignment).toBe('match')
  })
})

const hourMs = 60 * 60 * 1000

describe('learned TLS fingerprints', () => {
  const countingKey = createSecretKey(Buffer.alloc(32, 1))
  const master = createKeyring(Buffer.alloc(32, 7).toString('base64')).current

  /** Returns the final decision about visitor `n`, with natural input, from its own network, in hour `n`. */
  function decided(
    n: number,
    client: Client,
    ja4: string,
    learned = noLearnedAnswers,
  ): SessionScored {
    const ip = `10.${n >> 8}.${n & 255}.7`
    const state = stateOf(
      testSession(`learned-${n}`, { client, ip, document: { ja4 } }),
      naturalInput,
    )
    const evaluation = evaluateState(state, {
      learned: {
        // Apple's engine is not learned.
        ...(client === desktopSafari ? noLearnedAnswers : taught),
        answersTo: (of) => taught.answersTo(of) ?? learned.answersTo(of),
      },
    })
    const visitor = visitorLink({ id: `vid_${n}` })
    const evaluatedAt = startedAt + n * hourMs
    return scored(state, evaluation, { countingKey, visitor, evaluatedAt }).data
  }

  /** Returns what is learned from the given number of visitors per client, all with this JA4. */
  function learnedOf(ja4: string, ...clients: [Client, visitors: number][]): LearnedAnswers {
    let n = 0
    const rows = clients.flatMap(([client, visitors]) =>
      Array.from({ length: visitors }, () => answerRows(decided(n++, client, ja4))).flat(),
    )
    return createLearnedAnswers([...mergeAnswers(rows).values()], {
      now: startedAt,
      keys: [master],
    })
  }

  const alignment = (client: Client, ja4: string, learned: LearnedAnswers) =>
    decided(9999, client, ja4, learned).connection_fingerprint.user_agent_alignment
  const says = (learned: LearnedAnswers, client = desktopChrome) =>
    signalsOf(decided(9999, client, go, learned)).includes('browser_with_tool_handshake')

  it('of a browser identify its engine, also if the user agent claims another one', () => {
    const learned = learnedOf(unrecorded, [desktopFirefox, 30])
    expect(alignment(desktopFirefox, unrecorded, learned)).toBe('match')
    expect(alignment(desktopChrome, unrecorded, learned)).toBe('mismatch')
    const few = learnedOf(unrecorded, [desktopFirefox, 19])
    expect(alignment(desktopFirefox, unrecorded, few)).toBe('unknown')
    expect(decided(9999, desktopChrome, unrecorded, learned).signals_fired).toEqual(
      decided(9999, desktopChrome, unrecorded).signals_fired,
    )
  })

  it('of a TLS-intercepting proxy are ignored once people with several engines have used it', () => {
    expect(says(noLearnedAnswers)).toBe(true)
    const learned = learnedOf(go, [desktopChrome, 60], [desktopFirefox, 25])
    expect([says(learned), says(learned, desktopFirefox)]).toEqual([false, false])
    const { verdict, connection_fingerprint } = decided(9999, desktopChrome, go, learned)
    expect([verdict, connection_fingerprint.user_agent_alignment]).toEqual(['human', 'unknown'])
    expect(says(learnedOf(go, [desktopChrome, 60], [desktopFirefox, 19]))).toBe(true)
  })

  it('of a tool stay a mismatch, however many programs claim one browser', () => {
    const learned = learnedOf(go, [desktopChrome, 100])
    expect(learned.answersTo(question)?.has('blink')).toBe(true)
    expect(says(learned)).toBe(true)
    expect(alignment(desktopChrome, go, learned)).toBe('mismatch')
  })

  it('are not learned from sessions with other risk signals', () => {
    const liar = withParts(desktopFirefox, { navigator: { user_agent: safariAgent } })
    const learned = learnedOf(go, [headlessChrome, 40], [liar, 40])
    expect(learned.answersTo(question)).toBeUndefined()
    expect(says(learned)).toBe(true)
  })

  it('of a tool are not learned from unproven engines', () => {
    const through = (ja4: string) => learnedOf(ja4, [desktopChrome, 30], [desktopSafari, 30])
    expect(alignment(desktopSafari, unrecorded, through(unrecorded))).toBe('unknown')
    expect(
      through(unrecorded)
        .answersTo({ ...question, class: classOf(unrecorded) })
        ?.has('webkit'),
    ).toBe(true)
    expect(through(go).answersTo(question)?.has('webkit')).toBe(false)
  })

  const classOf = (ja4: string) => ja4.slice(ja4.indexOf('_') + 1)
  const question = {
    environment: 'live' as const,
    organizationId,
    class: classOf(go),
    question: 'handshake',
  }
})
