import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { noNetwork } from '../../../infra/ip/network.ts'
import { snapshotSchema } from '../../../schemas/observations.ts'
import { deviceOf, nativeDetailOf } from '../../../services/scoring/device.ts'
import { browserOf } from '../../../services/scoring/scored-event.ts'
import { evaluate } from '../../../services/scoring/signals/evaluate.ts'
import { profileOf, vectorOf } from '../../../services/scoring/visitors/profile.ts'
import { batch, opened, testSession } from './support/events.ts'
import { decisionAbout, evaluateClient, stateAfter } from './support/sessions.ts'
import * as clients from './support/snapshots.ts'

describe('detail', () => {
  it('names browser, system and app', () => {
    const shown = (client: clients.Client) => {
      const { facts } = evaluateClient(client)
      const { name, version } = deviceOf(facts).operating_system
      const { name: browser, major_version, engine, app_name } = browserOf(facts)
      return [browser, major_version, engine, app_name, name, version, deviceOf(facts).form_factor]
    }
    expect(shown(clients.desktopChrome)).toEqual([
      'Google Chrome',
      '140',
      'blink',
      null,
      'macOS',
      '15.6.0',
      'desktop',
    ])
    expect(shown(clients.desktopSafari)).toEqual([
      'Safari',
      '18',
      'webkit',
      null,
      'macOS',
      '10.15.7',
      'desktop',
    ])
    expect(shown(clients.chromebook)).toEqual([
      'Google Chrome',
      '140',
      'blink',
      null,
      'Chrome OS',
      '16371.0.0',
      'desktop',
    ])
    expect(shown(clients.resistingFirefox)).toEqual([
      'Firefox',
      '140',
      'gecko',
      null,
      'Windows',
      '10.0',
      'desktop',
    ])
    expect(shown(clients.iphoneSafari)).toEqual([
      'Safari',
      '18',
      'webkit',
      null,
      'iOS',
      '18.5',
      'mobile',
    ])
    expect(shown(clients.androidWebView).slice(2, 4)).toEqual(['blink', 'Instagram'])
    expect(shown(clients.headlessChrome)[0]).toBe('HeadlessChrome')
  })

  it('of an app fills what only apps have, of the web nothing of it', () => {
    const native = {
      device_model: 'iPhone15,2',
      os_name: 'iOS',
      os_version: '18.5',
      install_id: 'i-1',
      bundle_id: 'com.example.shop',
      jailbreak_or_root: true,
    }
    const session = testSession('app', { platform: 'ios', client: { snapshot: { native } } })
    const { native_app, install_id, native_runtime_integrity, browser, evidence, ...decision } =
      decisionAbout(stateAfter([...opened(session), batch(session)]))
    expect(native_app?.bundle_id).toBe('com.example.shop')
    expect(install_id).toBe('i-1')
    expect(native_runtime_integrity?.jailbreak_or_root.detected).toBe(true)
    expect(browser).toMatchObject({ engine: 'native', app_name: 'com.example.shop' })
    // Nothing attests an app, so that all of it may be invented.
    expect(decision).toMatchObject({ verdict: 'inconclusive', risk_score: 40 })
    expect(evidence?.unchecked).toContain('attestation')
    expect(evidence?.claimed).toEqual(['native_runtime_integrity', 'native_app', 'install_id'])
    const web = nativeDetailOf(evaluateClient(clients.desktopChrome).facts)
    expect(Object.values(web).every((value) => value === null)).toBe(true)
  })

  it.each([
    [null, null],
    [
      { status: 'signed', reason: null },
      { status: 'unknown_key', domain: 'agent.example' },
    ],
    [
      { status: 'unknown_key', reason: 'algorithm' },
      { status: 'unknown_key', domain: 'agent.example' },
    ],
    [
      { status: 'invalid', reason: 'lifetime' },
      { status: 'invalid', domain: 'agent.example' },
    ],
    [
      { status: 'absent', reason: null },
      { status: 'absent', domain: 'agent.example' },
    ],
  ] as const)('of a signature %j names Web Bot Auth as %j', (found, expected) => {
    const signature = found && { ...found, signed: null }
    const session = testSession('signed', { signature, signatureAgent: 'agent.example' })
    expect(decisionAbout(stateAfter([...opened(session), batch(session)])).web_bot_auth).toEqual(
      expected,
    )
  })

  it('shows the handshake of which an edge told', () => {
    const ja4 = 't13d1517h2_8daaf6152771_cb7bf5808d99'
    const session = testSession('handshake', { ja4 })
    const { connection_fingerprint } = decisionAbout(
      stateAfter([...opened(session), batch(session)]),
    )
    expect(connection_fingerprint.ja4.hash).toBe(ja4)
  })

  it('of a session without a snapshot is all unknown and still an event', () => {
    const state = stateAfter(opened(testSession('empty')))
    expect(decisionAbout(state)).toMatchObject({
      verdict: 'inconclusive',
      manipulation: null,
      analysis_coverage: { browser: false, visitor_identity: false },
    })
  })

  it('of any JSON that a client may send can be encoded, and never has a NUL', () => {
    const members = Object.keys(snapshotSchema.parse({}))
    const values = fc.oneof(
      fc.jsonValue(),
      fc.string(),
      fc.double(),
      fc.constant('a\0b'),
      fc.constant(2 ** 40),
      fc.constant(-5),
    )
    const inner = [...new Set(members.flatMap((member) => Object.keys(groupOf(member))))]
    const group = fc.dictionary(fc.constantFrom(...inner), values)
    const snapshots = fc.dictionary(fc.constantFrom(...members), fc.oneof(group, values))
    fc.assert(
      fc.property(snapshots, (snapshot) => {
        const session = testSession('any')
        const observations = JSON.parse(
          JSON.stringify({ version: 1, elapsed_ms: 1, snapshot, behavior: snapshot }),
        )
        const state = stateAfter([...opened(session), batch(session, { observations })])
        expect(JSON.stringify(decisionAbout(state))).not.toContain('\\u0000')
        const vector = vectorOf(
          profileOf(evaluate({ state, network: noNetwork.lookup('', 0) }).facts),
        )
        expect(vector.every((value) => value === -1 || (value >= 0 && value <= 1))).toBe(true)
      }),
      { numRuns: 100 },
    )
  })
})

function groupOf(member: string): object {
  return (
    Object.entries(snapshotSchema.parse({ native: {} })).find(([name]) => name === member)?.[1] ??
    {}
  )
}
