import fc from 'fast-check'
import { expect, it } from 'vitest'
import { snapshotSchema } from '../../../schemas/observations.ts'
import { deviceOf, nativeDetailOf } from '../../../services/scoring/device.ts'
import { modelId, standardModel } from '../../../services/scoring/model/model.ts'
import { scoreOf } from '../../../services/scoring/model/score.ts'
import { browserOf } from '../../../services/scoring/scored-event.ts'
import { profileOf, vectorOf } from '../../../services/scoring/visitors/profile.ts'
import { batch, opened, testSession } from './support/events.ts'
import {
  decisionAbout,
  evaluateClient,
  evaluateState,
  signalsOf,
  stateAfter,
} from './support/sessions.ts'
import * as clients from './support/snapshots.ts'

it.each([
  [clients.desktopChrome, 'Google Chrome 140 blink', null, 'macOS 15.6.0 desktop'],
  [clients.desktopSafari, 'Safari 18 webkit', null, 'macOS 10.15.7 desktop'],
  [clients.chromebook, 'Google Chrome 140 blink', null, 'Chrome OS 16371.0.0 desktop'],
  [clients.resistingFirefox, 'Firefox 140 gecko', null, 'Windows 10.0 desktop'],
  [clients.iphoneSafari, 'Safari 18 webkit', null, 'iOS 18.5 mobile'],
  [clients.androidWebView, expect.stringContaining('blink'), 'Instagram', expect.any(String)],
  [clients.headlessChrome, expect.stringContaining('HeadlessChrome'), null, expect.any(String)],
])('names browser, system and app', (client, browser, app, device) => {
  const { facts } = evaluateClient(client)
  const { name, major_version, engine, app_name } = browserOf(facts)
  const { operating_system: system, form_factor } = deviceOf(facts)
  expect([
    [name, major_version, engine].join(' '),
    app_name,
    [system.name, system.version, form_factor].join(' '),
  ]).toEqual([browser, app, device])
})

it('fills native members for apps only', () => {
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
    decisionAbout(session)
  expect(native_app?.bundle_id).toBe('com.example.shop')
  expect(install_id).toBe('i-1')
  expect(native_runtime_integrity?.jailbreak_or_root.detected).toBe(true)
  expect(browser).toMatchObject({ engine: 'native', app_name: 'com.example.shop' })
  // An app without attestation may have invented all of this.
  expect(decision).toMatchObject({ verdict: 'inconclusive', risk_score: 40 })
  expect(evidence?.unchecked).toContain('attestation')
  expect(evidence?.claimed).toEqual(['native_runtime_integrity', 'native_app', 'install_id'])
  const web = nativeDetailOf(evaluateClient(clients.desktopChrome).facts)
  expect(Object.values(web).every((value) => value === null)).toBe(true)
})

it.each([
  [null, null, null],
  ['signed', null, 'unknown_key'],
  ['unknown_key', 'algorithm', 'unknown_key'],
  ['invalid', 'lifetime', 'invalid'],
  ['absent', null, 'absent'],
] as const)('maps a %s signature to web_bot_auth', (found, reason, status) => {
  const signature = found && { status: found, reason, signed: null }
  const session = testSession('signed', {
    document: { signature, signature_agent: 'agent.example' },
  })
  expect(decisionAbout(session).web_bot_auth).toEqual(status && { status, domain: 'agent.example' })
})

it('contains the JA4 fingerprint that the edge reported', () => {
  const ja4 = 't13d1517h2_8daaf6152771_cb7bf5808d99'
  const { connection_fingerprint } = decisionAbout(testSession('edge', { document: { ja4 } }))
  expect(connection_fingerprint.ja4.hash).toBe(ja4)
})

it('makes a valid event without a snapshot', () => {
  const state = stateAfter(opened(testSession('empty')))
  expect(decisionAbout(state)).toMatchObject({
    verdict: 'inconclusive',
    manipulation: null,
    analysis_coverage: { browser: false, visitor_identity: false },
  })
})

it('encodes any JSON from a client, without NUL characters, and with the score of its signals', () => {
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
  const any = fc.dictionary(fc.constantFrom(...members), fc.oneof(group, values))
  const { headlessChrome, bareChromium, desktopFirefox } = clients
  const { snapshot: forged = {} } = clients.withParts(clients.desktopChrome, {
    automation: { globals: ['emit'], cdp_runtime: true },
  })
  const whole = [headlessChrome, bareChromium, desktopFirefox].map(({ snapshot }) => snapshot)
  const snapshots = fc.oneof(any, fc.constantFrom(forged, ...whole))
  fc.assert(
    fc.property(snapshots, any, (snapshot, behavior) => {
      const session = testSession('any')
      const events = [...opened(session), batch(session, { observations: { snapshot, behavior } })]
      const state = stateAfter(events)
      const decision = decisionAbout(state)
      expect(JSON.stringify(decision)).not.toContain('\\u0000')
      const { has_snapshot, risk_score, verdict, score_breakdown } = decision
      const hasSnapshot = has_snapshot === true
      expect(scoreOf(standardModel, { signals: signalsOf(decision), hasSnapshot })).toMatchObject({
        risk: risk_score,
        verdict,
        breakdown: score_breakdown,
      })
      expect(decision.model).toBe(modelId(standardModel))
      const vector = vectorOf(profileOf(evaluateState(state).facts))
      expect(vector.every((value) => value === -1 || (value >= 0 && value <= 1))).toBe(true)
    }),
    { numRuns: 100 },
  )
})

function groupOf(member: string): object {
  return (
    Object.entries(snapshotSchema.parse({ native: {} })).find(([name]) => name === member)?.[1] ??
    {}
  )
}
