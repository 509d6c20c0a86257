import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nativeDetail } from '../../../schemas/native-detail.ts'
import { type Snapshot, snapshotSchema } from '../../../schemas/observations.ts'
import { nativeRuntimeIntegrity } from '../../../services/readback/schemas/native.ts'
import { hashesOf } from '../../../services/scoring/signals/repeats.ts'
import { testSession } from './support/events.ts'
import { decisionAbout, evaluateClient } from './support/sessions.ts'

const sensorStats = { bias: [0.1, 0.2, 0.3], noise: [1, 2, 3] }
const app = { device_model: 'Pixel 9', bundle_id: 'com.example.shop' }

const sessionOf = (native: object) => {
  const snapshot = snapshotSchema.parse({ native: { ...app, ...native } })
  return decisionAbout(testSession('app', { platform: 'android', client: { snapshot } }))
}

test('a decision contains native detail, and lists it as claimed', () => {
  const { native_app, native_carrier, native_motion_print, native_runtime_integrity, evidence } =
    sessionOf({
      hooks: true,
      install_time_epoch_ms: 1_700_000_000_000,
      mcc: '268',
      radio_access: ['lte'],
      integrity: {
        hooks: { frida_ports: [27_042], frida_thread_names: ['gum-js-loop'] },
        sim_posture: { detected: true, signals: ['no_sim'] },
        app_provenance: { detected: false },
      },
      motion: { sample_count: 50, gyro: sensorStats, accel: sensorStats },
    })
  expect(native_app?.install_time_epoch_ms).toBe(1_700_000_000_000)
  expect(native_carrier).toMatchObject({ carrier_name: null, mcc: '268', radio_access: ['lte'] })
  expect(native_motion_print).toEqual({
    platform: 'android',
    sample_count: 50,
    gyro: sensorStats,
    accel: sensorStats,
    mag: null,
  })
  expect(native_runtime_integrity?.hooks).toMatchObject({
    detected: true,
    frida_ports: [27_042],
    frida_thread_names: ['gum-js-loop'],
    xposed_packages: null,
  })
  expect(native_runtime_integrity?.sim_posture).toEqual({ detected: true, signals: ['no_sim'] })
  const of = (name: string) => `native_runtime_integrity.${name}`
  expect(evidence.unchecked).toContain(of('hardware_claims_mismatch'))
  expect(evidence.unchecked).not.toContain(of('sim_posture'))
  expect(evidence.unchecked).not.toContain(of('app_provenance'))
  expect(evidence.claimed).toEqual([
    'native_runtime_integrity',
    'native_app',
    'native_carrier',
    'native_motion_print',
  ])
})

test('native detail does not affect the score, because an app may claim anything', () => {
  const { risk_score } = sessionOf({ hooks: false })
  const found = { hardware_claims_mismatch: { detected: true, signals: ['cpu'] } }
  expect(sessionOf({ hooks: false, integrity: found }).risk_score).toBe(risk_score)
})

test('native detail does not affect the snapshot hash', () => {
  const hashOf = (native: object) =>
    hashesOf(evaluateClient({ snapshot: { native } }).facts).snapshot_hash
  const bare: Snapshot['native'] = snapshotSchema.parse({ native: app }).native
  const detailed = snapshotSchema.parse({
    native: { ...app, install_time_epoch_ms: 5, integrity: { debugger: { tracer_pid: 7 } } },
  }).native
  expect(hashOf({ ...detailed })).toBe(hashOf({ ...bare }))
  expect(hashOf({ ...bare, device_model: 'Pixel 8' })).not.toBe(hashOf({ ...bare }))
})

test('native detail matches the API schema, whatever the app sends', () => {
  const members = Object.entries(nativeDetail)
    .filter(([name]) => name.startsWith('integrity.'))
    .map(([name, all]) => [name.slice('integrity.'.length), Object.keys(all)] as const)
  const value = fc.oneof(
    fc.jsonValue(),
    fc.boolean(),
    fc.nat(),
    fc.array(fc.string(), { maxLength: 40 }),
  )
  const integrity = fc.record(
    Object.fromEntries(
      members.map(([name, all]) => [name, fc.dictionary(fc.constantFrom(...all), value)]),
    ),
  )
  fc.assert(
    fc.property(integrity, (found) => {
      const { native_runtime_integrity: read } = sessionOf({ integrity: found })
      const shown: unknown = JSON.parse(JSON.stringify(read, (_, one: unknown) => one ?? undefined))
      expect(nativeRuntimeIntegrity.safeParse(shown).error).toBeUndefined()
    }),
    { numRuns: 200 },
  )
})

test.each([
  ['two axes', { ...sensorStats, bias: [1, 2] }],
  ['no number', { ...sensorStats, noise: [1, 2, 'x'] }],
  ['nothing', null],
])('the motion print is null if a sensor has %s', (_, gyro) => {
  expect(
    sessionOf({ motion: { sample_count: 1, gyro, accel: sensorStats } }).native_motion_print,
  ).toBeNull()
})
