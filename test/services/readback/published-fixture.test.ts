import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NativeRuntimeIntegrity, SessionScored } from '../../../schemas/events.ts'
import fixture from '../../fixtures/contract/session-detail.json' with { type: 'json' }
import { noAgent, visitorLink } from '../../support/session-scored.ts'
import { expectShape, publishedSchema } from './contract.ts'
import { id, type Readback, startReadback } from './support.ts'

const published = fixture.data
const ms = (time: string) => Date.parse(time)

const integrity: SessionScored['runtime_integrity'] = {
  tampering_detected: 'high_risk',
  developer_tools_detected: 'high_risk',
  emulation_suspected: 'clean',
  virtualization_suspected: 'high_risk',
  privacy_hardening_suspected: 'notice',
  identity_spoofing_suspected: 'clean',
  replay_suspected: 'clean',
  outdated_environment: 'clean',
  verified_bot_identity: 'notice',
}

const request = {
  ...published.request,
  ip_address: '203.0.113.9',
  screen_size: '1440x900',
  is_touch_capable: false,
}

/** The decision that the published example shows, as an event. */
const scored: Partial<SessionScored> = {
  evidence: {
    sources: ['snapshot'],
    unchecked: ['verified_bot_identity'],
    missing: [],
    withheld: [],
    impossible: [],
    claimed: [],
  },
  session_id: published.id,
  event_id: published.decision.event_id,
  created_at: ms(published.created_at),
  evaluated_at: ms(published.decision.evaluated_at),
  verdict: 'bot',
  risk_score: published.decision.risk_score,
  phase: 'behavioral',
  is_provisional: false,
  request,
  visitor: visitorLink({
    id: 'vid_456789abcdefghjkmnpqrstvwx',
    identified_at: ms(published.visitor_fingerprint.identified_at),
  }),
  highlights: [
    {
      key: 'browser_automation',
      effect: 'increases_risk',
      importance: 'high',
      summary: 'Browser automation markers were detected.',
      evidence: [{ signal: 'webdriver_detected', name: 'WebDriver detected' }],
    },
    {
      key: 'browser_profile_consistent',
      effect: 'reduces_risk',
      importance: 'medium',
      summary: 'Has no "evidence":[], "lifecycle":null or "previous_decisions":[] of its own.',
      evidence: null,
    },
  ],
  attribution: {
    labels: [{ kind: 'tool', value: 'playwright', label: 'Playwright', confidence: 89 }],
    behaviors: [
      { channel: 'typing', value: 'synthetic-typing', label: 'Synthetic Typing', confidence: 86 },
    ],
  },
  web_bot_auth: published.web_bot_auth,
  network: {
    ...published.network,
    ip_version: 'ipv4',
    status: 'ready',
    evaluated_at: ms(published.network.evaluated_at),
  },
  runtime_integrity: integrity,
  connection_fingerprint: { ...published.connection_fingerprint, user_agent_alignment: 'match' },
  browser: published.browser,
  device: published.device,
  analysis_coverage: { ...published.analysis_coverage, attestation: null },
  signals_fired: published.signals_fired.map((signal) => ({ ...signal, channel: 'a channel' })),
  client_telemetry: published.client_telemetry,
}

const earlier: Partial<SessionScored> = {
  ...scored,
  event_id: published.previous_decisions[0]?.event_id ?? '',
  verdict: 'inconclusive',
  risk_score: 41,
  phase: 'snapshot',
  is_provisional: true,
  evaluated_at: ms('2026-03-24T20:00:01.000Z'),
}

const seen = { detected: true, signals: ['cydia'] }
const nativeIntegrity: NativeRuntimeIntegrity = {
  platform: 'ios',
  jailbreak_or_root: {
    ...seen,
    present_paths: ['/Applications/Cydia.app'],
    dyld_insert_libraries: null,
    verified_boot_state: null,
    magisk_mount_present: null,
    su_on_path: false,
  },
  hooks: {
    detected: false,
    frida_ports: [27042],
    frida_thread_names: null,
    hooked_symbols: null,
    self_hooked_symbols: null,
    prologue_anomaly_count: 0,
    unexpected_dyld_images: null,
    xposed_packages: null,
  },
  debugger: {
    attached: false,
    tracer_pid: null,
    breakpoint_count: null,
    watchpoint_thread_count: null,
  },
  code_signing: {
    invalid: false,
    code_sign_valid: true,
    text_integrity_ok: null,
    application_debuggable: null,
    dyld_insert_libraries: null,
  },
  simulator_or_emulator: {
    detected: false,
    is_ios_app_on_mac: null,
    qemu_files: null,
    ro_hardware: null,
    ro_product_model: null,
    simulator_env_keys: null,
  },
  hardware_claims_mismatch: seen,
  sim_posture: seen,
  app_provenance: seen,
  debug_posture: {
    detected: false,
    adb_enabled: null,
    developer_options_enabled: null,
    app_debuggable: null,
    app_profileable: null,
    app_test_only: null,
    debugger_attached: null,
    get_task_allow: true,
    embedded_provisioning_profile_present: null,
    receipt_is_sandbox: null,
    receipt_is_testflight: null,
    development_bundle: null,
    active_debugger_attached: null,
    breakpoint_count: null,
    exception_port_count: null,
    watchpoint_thread_count: null,
    tracer_pid: null,
    direct_syscall_tracer_pid: null,
    risk_signals: [],
  },
}

const native: Partial<SessionScored> = {
  session_id: id('sid', 2),
  event_id: id('evt', 2),
  native_runtime_integrity: nativeIntegrity,
  native_app: {
    bundle_id: 'com.example.app',
    app_version: '1.2',
    app_build: null,
    install_time_epoch_ms: 1_760_000_000_000,
    provisioning_team: null,
  },
  native_carrier: {
    platform: 'ios',
    carrier_name: null,
    country_iso: 'DE',
    mcc: null,
    mnc: null,
    phone_type: null,
    network_type: null,
    radio_access: ['5G'],
  },
  native_motion_print: {
    platform: 'ios',
    sample_count: 100,
    gyro: { bias: [0, 0.5, 1], noise: [1, 2, 3] },
    accel: { bias: [0, 0.5, 1], noise: [1, 2, 3] },
    mag: null,
  },
  device_identity: {
    object: 'device_identity',
    id: 'did_1',
    confidence: 99,
    source: 'attested',
    platform: 'ios',
    identified_at: '2026-03-24T20:00:01.000Z',
    lifecycle: {
      first_seen_at: '2026-03-24T20:00:01.000Z',
      last_seen_at: '2026-03-24T20:00:01.000Z',
      seen_count: 1,
    },
    matched_anchors: ['keychain'],
  },
  install_id: 'install-1',
}

let readback: Readback
beforeAll(async () => {
  readback = await startReadback()
  await readback.score(earlier, scored, native)
})
afterAll(() => readback.stop())

describe('the published example', () => {
  test('matches the published schema, so that checking against it means something', () => {
    expect(publishedSchema('SessionDetailResponse').safeParse(fixture).error).toBeUndefined()
  })

  test('comes out as published when the same session is scored here', async () => {
    const url = `/v1/sessions/${published.id}`
    await readback.send({
      url,
      method: 'PATCH',
      body: { client_user_id: published.client_user_id },
    })
    const { body } = await readback.send({ url })
    expectShape('SessionDetailResponse', body)
    const [automation, consistent] = scored.highlights ?? []
    expect(body.data).toEqual({
      ...published,
      runtime_integrity: integrity,
      highlights: [automation, { ...consistent, evidence: undefined }],
      attribution: scored.attribution,
      visitor_fingerprint: {
        ...published.visitor_fingerprint,
        lifecycle: {
          first_seen_at: '2026-03-24T20:00:01.000Z',
          last_seen_at: '2026-03-24T20:00:05.000Z',
          seen_count: 1,
        },
      },
      behavior: null,
      mark: null,
      agent: noAgent,
      evidence: scored.evidence,
      scoring: { version: '1', model: 'tidegate-test' },
      repeats: null,
      analysis_coverage: scored.analysis_coverage,
    })
  })
})

test('members that a native SDK could not see are absent', async () => {
  const { body } = await readback.send({ url: `/v1/sessions/${id('sid', 2)}` })
  expectShape('SessionDetailResponse', body)
  expect(body.data.native_runtime_integrity.jailbreak_or_root).toStrictEqual({
    detected: true,
    signals: ['cydia'],
    present_paths: ['/Applications/Cydia.app'],
    su_on_path: false,
  })
  expect(body.data.native_runtime_integrity.debug_posture).toStrictEqual({
    detected: false,
    get_task_allow: true,
    risk_signals: [],
  })
  expect(body.data.native_app).toEqual(native.native_app)
  expect(body.data.native_motion_print).toEqual(native.native_motion_print)
  expect(body.data.device_identity).toEqual(native.device_identity)
  expect(body.data.install_id).toBe('install-1')
})
