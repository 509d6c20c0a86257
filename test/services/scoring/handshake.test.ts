import { describe, expect, it } from 'vitest'
import { readAgent } from '../../../services/scoring/session/agent.ts'
import { alignmentOf, knownHandshake } from '../../../services/scoring/session/handshake.ts'
import hellos from '../../fixtures/tls-hellos/hellos.json' with { type: 'json' }
import { batch, opened, testSession } from './support/events.ts'
import { naturalKeys, naturalMouse } from './support/natural-input.ts'
import { decisionAbout, stateAfter } from './support/sessions.ts'

const go = 't13d1312h2_f57a46bbacb6_ab7e3b40a677'
const chromium = 't13d1517h2_8daaf6152771_cb7bf5808d99'
const firefox = 't13d1617h2_86a278354501_3cbfd9057e0d'

describe('a handshake', () => {
  it.each(hellos)('of $client is known as that of $family', ({ family, ja4 }) => {
    const isBrowser = family === 'chromium' || family === 'firefox'
    expect(knownHandshake(ja4)).toMatchObject({ kind: isBrowser ? 'browser' : 'tool', product: family })
  })

  const web = { platform: 'web', ja4: go, engine: 'blink' } as const
  it.each([
    ['match', { ...web, ja4: chromium }],
    ['match', { ...web, ja4: firefox, engine: 'gecko' }],
    ['mismatch', web],
    ['mismatch', { ...web, engine: 'webkit' }],
    ['unknown', { ...web, ja4: firefox }],
    ['unknown', { ...web, ja4: 't13d2014h2_a09f3c656075_14788d8d241b' }],
    ['unknown', { ...web, ja4: null }],
    ['unknown', { ...web, engine: 'unknown' }],
    ['unknown', { ...web, platform: 'android' }],
  ] as const)('is %s of %j', (expected, { platform, ja4, engine }) => {
    const state = stateAfter(opened(testSession('aligned', { ja4 })))
    const [document = null] = state.documents
    const agent = { ...readAgent(''), engine }
    expect(alignmentOf({ platform, document, agent })).toBe(expected)
  })
})

describe('a browser that speaks TLS like a tool', () => {
  // Input as a person produces it, behind a proxy that opens TLS.
  const behavior = { mouse: naturalMouse, keyboard: naturalKeys }

  const decision = (ja4: string | null, input?: object) => {
    const session = testSession('spoken', { ja4 })
    const { snapshot } = session.client
    const observations = { version: 1, elapsed_ms: 500, snapshot, ...(input && { behavior: input }) }
    return decisionAbout(stateAfter([...opened(session), batch(session, { observations })]))
  }

  it('is not human by that alone, and no bot either', () => {
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

  it('is a person where somebody acts as people do', () => {
    expect(decision(go, behavior).verdict).toBe('human')
  })

  it("changes nothing where the handshake is the browser's own", () => {
    const { risk_score, connection_fingerprint } = decision(chromium)
    expect(risk_score).toBe(decision(null).risk_score)
    expect(connection_fingerprint.user_agent_alignment).toBe('match')
  })
})
