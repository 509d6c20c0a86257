import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AddressNetwork, noNetwork } from '../../../infra/ip/network.ts'
import type { RuntimeIntegrity } from '../../../schemas/events.ts'
import type { Snapshot } from '../../../schemas/observations.ts'
import { nativeDetailOf } from '../../../services/scoring/device.ts'
import { evidenceOf } from '../../../services/scoring/explain/evidence.ts'
import { runtimeIntegrityOf } from '../../../services/scoring/explain/findings.ts'
import { type Evaluation, withHistory } from '../../../services/scoring/signals/evaluate.ts'
import { repeatsOf, sessionScored } from '../../support/session-scored.ts'
import { opened, startedAt, type TestSession, testSession } from './support/events.ts'
import { decisionAbout, evaluateClient, stateAfter } from './support/sessions.ts'
import {
  androidChrome,
  type Client,
  desktopChrome,
  desktopFirefox,
  withParts,
} from './support/snapshots.ts'

const skipped = noNetwork.lookup('203.0.113.9', startedAt)

const scored = (session: TestSession, network: AddressNetwork = skipped) =>
  decisionAbout(session, { network })

const runtimeNames = Object.keys(sessionScored().runtime_integrity)
const uncheckedRuntime = (event: ReturnType<typeof scored>) =>
  event.evidence.unchecked.filter((name) => runtimeNames.includes(name))
const uncheckedBelow = (event: ReturnType<typeof scored>, path: string) =>
  event.evidence.unchecked.filter((name) => name.startsWith(path))

const page = (parts: Parameters<typeof withParts>[1] = {}) =>
  testSession('page', { client: withParts(desktopChrome, parts) })
const app = (native: Partial<Snapshot['native'] & object>) =>
  testSession('app', { platform: 'ios', client: { snapshot: { native } } })

describe('network evidence', () => {
  const anonymity = { ...skipped.anonymity, tor: true }
  const asked: AddressNetwork['sources'] = ['location_database', 'anonymity_database']

  it('a location database does not check for Tor', () => {
    const event = scored(page(), { ...skipped, sources: ['location_database'] })
    expect(event.evidence.sources).toEqual([
      'request_headers',
      'snapshot',
      'learned_answers',
      'location_database',
    ])
    expect(event.evidence.unchecked).toContain('network.anonymity.tor')
    expect(event.network).toMatchObject({ status: 'skipped', anonymity: { tor: false } })
    expect(event.analysis_coverage.network).toBe(false)
  })

  it('lists the sources that were checked, and the fields that none of them covers', () => {
    const event = scored(page(), { ...skipped, status: 'ready', sources: asked, anonymity })
    expect(event.evidence.sources).toEqual(expect.arrayContaining(asked))
    expect(event.analysis_coverage.network).toBe(true)
    expect(uncheckedBelow(event, 'network.')).toEqual([
      'network.anonymity.relay',
      'network.anonymity.callback_proxy',
      'network.reputation',
      'network.evidence.operator_tags',
      'network.evidence.client_types',
    ])
  })

  it('address lists clear hosting, Tor and relays, but not VPNs and proxies', () => {
    const listed = { ...skipped, status: 'ready' as const, sources: ['address_lists' as const] }
    expect(uncheckedBelow(scored(page(), listed), 'network.anonymity.')).toEqual([
      'network.anonymity.vpn',
      'network.anonymity.proxy',
      'network.anonymity.residential_proxy',
      'network.anonymity.callback_proxy',
    ])
    const vpn = scored(page(), { ...listed, anonymity: { ...skipped.anonymity, vpn: true } })
    expect(vpn.evidence.unchecked).not.toContain('network.anonymity.vpn')
  })

  it('a flag that is set counts as checked', () => {
    const event = scored(page(), { ...skipped, sources: ['location_database'], anonymity })
    expect(event.evidence.unchecked).not.toContain('network.anonymity.tor')
    expect(event.evidence.unchecked).toContain('network.anonymity.vpn')
  })
})

describe('runtime integrity', () => {
  it('is unchecked without a snapshot', () => {
    const event = decisionAbout(stateAfter(opened(testSession('none'))))
    expect(event.evidence.sources).toEqual(['request_headers'])
    expect(uncheckedRuntime(event)).toEqual(runtimeNames)
    expect(event.analysis_coverage.runtime).toBe(false)
  })

  it('is checked if a signal fired, as for a page that claims to be an app', () => {
    const event = scored(page({ native: { hooks: false } }))
    expect(event.runtime_integrity.tampering_detected).toBe('elevated')
    expect(event.evidence.sources).not.toContain('native_observations')
    expect(uncheckedRuntime(event)).not.toContain('tampering_detected')
  })
})

describe('an app', () => {
  const device = { device_model: 'iPhone15,2' }

  it('that reports one check leaves the others unchecked', () => {
    const event = scored(app({ ...device, hooks: false }))
    expect(event.evidence.sources).toContain('native_observations')
    expect(event.native_runtime_integrity?.debugger.attached).toBe(false)
    expect(uncheckedBelow(event, 'native_runtime_integrity.')).toEqual(
      [
        'jailbreak_or_root',
        'debugger',
        'code_signing',
        'simulator_or_emulator',
        'debug_posture',
        'hardware_claims_mismatch',
        'sim_posture',
        'app_provenance',
      ].map((name) => `native_runtime_integrity.${name}`),
    )
    expect(uncheckedRuntime(event)).toEqual([
      'tampering_detected',
      'developer_tools_detected',
      'emulation_suspected',
      'virtualization_suspected',
      'privacy_hardening_suspected',
      'replay_suspected',
      'outdated_environment',
    ])
    expect(event.analysis_coverage.runtime).toBe(true)
  })

  it('that reports no check has neither coverage nor native_runtime_integrity', () => {
    const event = scored(app(device))
    expect(event.native_runtime_integrity).toBeNull()
    expect(event.analysis_coverage).toMatchObject({ runtime: false, device: true })
    expect(uncheckedRuntime(event)).toContain('tampering_detected')
  })

  it('without a device model has no device coverage', () => {
    expect(scored(app({ hooks: false })).analysis_coverage.device).toBe(false)
  })
})

type Sent = Record<string, Record<string, unknown>>
type Member = [group: string, name: string, value: unknown]

// Each value makes some member of `runtime_integrity` other than clean in some browser.
const hostile: Member[] = [
  ['automation', 'webdriver_own_property', true],
  ['automation', 'cdp_runtime', true],
  ['tamper', 'patched_functions', ['Permissions.query', 'Screen.width']],
  ['tamper', 'foreign_primitives', ['JSON.stringify', 'Reflect.get', 'navigator.vendor']],
  ['tamper', 'navigator_own_properties', ['platform']],
  ['tamper', 'realm_differences', ['frame.vendor']],
  ['tamper', 'iframe_srcdoc_proxy', true],
  ['tamper', 'chrome_runtime_faked', true],
  ['tamper', 'webgl_parameter_mismatch', true],
  ['tamper', 'timezone_mismatch', true],
  ['tamper', 'brave', true],
  ['navigator', 'plugins_genuine', false],
  ['navigator', 'product_sub', '19990101'],
  ['navigator', 'platform', 'PlayStation 5'],
  ['navigator', 'hardware_concurrency', 200],
  ['navigator', 'max_touch_points', 0],
  ['environment', 'pointer_coarse', false],
  ['canvas', 'noise_detected', true],
  ['audio', 'noise_detected', true],
  ['audio', 'voice_count', 0],
  ['fonts', 'detected_count', 0],
  ['media', 'device_count', 0],
  ['webgl', 'renderer', 'Google SwiftShader'],
  ['engine', 'name', 'JavaScriptCore'],
  ['worker', 'platform', 'Linux x86_64'],
  ['worker', 'user_agent', 'Mozilla/5.0 of another'],
  ['iframe', 'platform', 'Linux x86_64'],
  ['iframe', 'user_agent', 'Mozilla/5.0 of another'],
]
const groups = [...new Set(hostile.map(([group]) => group))]
const members = hostile
  .filter(([, , value]) => !Array.isArray(value))
  .map(([group, name]) => [group, name])

const clients: Client[] = [desktopChrome, desktopFirefox, androidChrome]

function copyOf({ snapshot, ...rest }: Client) {
  const sent: Sent = structuredClone(Object(snapshot))
  return { ...rest, snapshot: sent }
}

function judged(client: Client, isCounted: boolean) {
  const own = evaluateClient(client)
  const repeats = isCounted ? repeatsOf(1) : null
  const { facts, fired }: Evaluation = withHistory(own, { visitorSessions: 1, repeats, near: null })
  const runtime_integrity = runtimeIntegrityOf(fired, facts)
  const described = { ...nativeDetailOf(facts), visitor: null, runtime_integrity }
  return { integrity: runtime_integrity, unchecked: evidenceOf(facts, described).unchecked }
}

function add({ snapshot }: { snapshot: Sent }, [group, name, value]: Member): void {
  snapshot[group] = { ...snapshot[group], [name]: value }
  // The SDK looks for a fake only if the object exists.
  if (name === 'chrome_runtime_faked')
    snapshot.environment = { ...snapshot.environment, has_chrome_object: true }
}

const namesOf = (integrity: RuntimeIntegrity) => Object.entries(integrity)

describe('a member of runtime_integrity', () => {
  it('that becomes clean by leaving out observations is unchecked', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...clients),
        fc.subarray(hostile, { maxLength: 4 }),
        fc.subarray(members, { maxLength: 4 }),
        fc.subarray(groups, { maxLength: 2 }),
        fc.boolean(),
        (client, bad, leftOut, wholeGroups, isCounted) => {
          const sent = copyOf(client)
          for (const one of bad) add(sent, one)
          const before = judged(sent, isCounted)
          for (const [group = '', name = ''] of leftOut) delete sent.snapshot[group]?.[name]
          for (const group of wholeGroups) delete sent.snapshot[group]
          const after = judged(sent, isCounted)
          const hidden = namesOf(after.integrity).filter(
            ([name, level]) => level === 'clean' && Object(before.integrity)[name] !== 'clean',
          )
          expect(after.unchecked).toEqual(expect.arrayContaining(hidden.map(([name]) => name)))
        },
      ),
      { numRuns: 200 },
    )
  })

  it('is checked if a browser sends a complete snapshot', () => {
    for (const client of clients) {
      const unchecked = judged(client, true).unchecked.filter((name) => !name.includes('.'))
      expect([client, unchecked]).toEqual([client, []])
    }
  })

  it('leaves replay_suspected unchecked without repeat counts', () => {
    expect(judged(desktopChrome, false).unchecked).toContain('replay_suspected')
  })
})
