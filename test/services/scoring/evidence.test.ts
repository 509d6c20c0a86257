import { describe, expect, it } from 'vitest'
import { type AddressNetwork, noNetwork } from '../../../infra/ip/network.ts'
import type { Snapshot } from '../../../schemas/observations.ts'
import { sessionScored } from '../../support/session-scored.ts'
import { opened, startedAt, type TestSession, testSession } from './support/events.ts'
import { decisionAbout, stateAfter } from './support/sessions.ts'
import { desktopChrome, withParts } from './support/snapshots.ts'

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

describe('the address', () => {
  const anonymity = { ...skipped.anonymity, tor: true }
  const asked: AddressNetwork['sources'] = ['location_database', 'anonymity_database']

  it('nobody looked for Tor in a list of countries', () => {
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

  it('whoever looked is named, and reputation and relays nobody looks for', () => {
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

  it('lists clear hosting, Tor and relays, and no list of VPNs and proxies is complete', () => {
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

  it('a flag that a city database has was looked up', () => {
    const event = scored(page(), { ...skipped, sources: ['location_database'], anonymity })
    expect(event.evidence.unchecked).not.toContain('network.anonymity.tor')
    expect(event.evidence.unchecked).toContain('network.anonymity.vpn')
  })
})

describe('the runtime', () => {
  it('of a whole snapshot is checked but for repeats, which nobody counted', () => {
    expect(uncheckedRuntime(scored(page()))).toEqual(['replay_suspected'])
  })

  it('of no snapshot is not checked at all', () => {
    const event = decisionAbout(stateAfter(opened(testSession('none'))))
    expect(event.evidence.sources).toEqual(['request_headers'])
    expect(uncheckedRuntime(event)).toEqual(runtimeNames)
    expect(event.analysis_coverage.runtime).toBe(false)
  })

  it.each<[string, Parameters<typeof withParts>[1]]>([
    ['developer_tools_detected', { automation: { cdp_runtime: null } }],
    ['outdated_environment', { navigator: { user_agent: 'Mozilla/5.0 (unheard of)' } }],
    ['emulation_suspected', { worker: { platform: null } }],
    ['identity_spoofing_suspected', { iframe: { user_agent: null } }],
    ['tampering_detected', { canvas: { noise_detected: null } }],
    ['virtualization_suspected', { webgl: { renderer: null } }],
  ])('%s is unchecked where the snapshot lacks what it looks at', (name, parts) => {
    const event = scored(page(parts))
    expect(event.runtime_integrity).toMatchObject({ [name]: 'clean' })
    expect(uncheckedRuntime(event)).toContain(name)
  })

  it('what fired was looked at: a page that claims to be an app', () => {
    const event = scored(page({ native: { hooks: false } }))
    expect(event.runtime_integrity.tampering_detected).toBe('elevated')
    expect(event.evidence.sources).not.toContain('native_observations')
    expect(uncheckedRuntime(event)).not.toContain('tampering_detected')
  })
})

describe('an app', () => {
  const device = { device_model: 'iPhone15,2' }

  it('that reports one check has not passed the others', () => {
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

  it('that reports no check at all has no coverage and no such member', () => {
    const event = scored(app(device))
    expect(event.native_runtime_integrity).toBeNull()
    expect(event.analysis_coverage).toMatchObject({ runtime: false, device: true })
    expect(uncheckedRuntime(event)).toContain('tampering_detected')
  })

  it('that names no model is not covered as a device', () => {
    expect(scored(app({ hooks: false })).analysis_coverage.device).toBe(false)
  })
})
