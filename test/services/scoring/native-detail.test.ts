import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nativeDetail } from '../../../schemas/native-detail.ts'
import { type Snapshot, snapshotSchema } from '../../../schemas/observations.ts'
import { nativeRuntimeIntegrity } from '../../../services/readback/schemas/native.ts'
import { hashesOf } from '../../../services/scoring/signals/repeats.ts'
import { testSession } from './support/events.ts'
import { decisionAbout, evaluateClient } from './support/sessions.ts'

const axes = { bias: [0.1, 0.2, 0.3], noise: [1, 2, 3] }
const app = { device_model: 'Pixel 9', bundle_id: 'com.example.shop' }

const sessionOf = (native: object) => {
  const snapshot = snapshotSchema.parse({ native: { ...app, ...native } })
  return decisionAbout(testSession('app', { platform: 'android', client: { snapshot } }))
}

test('what an app found is answered, and is named as what nothing but the app says', () => {
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
      motion: { sample_count: 50, gyro: axes, accel: axes },
    })
  expect(native_app?.install_time_epoch_ms).toBe(1_700_000_000_000)
  expect(native_carrier).toMatchObject({ carrier_name: null, mcc: '268', radio_access: ['lte'] })
  expect(native_motion_print).toEqual({
    platform: 'android',
    sample_count: 50,
    gyro: axes,
    accel: axes,
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

test('what an app found weighs nothing by itself, because an app may say anything', () => {
  const { risk_score } = sessionOf({ hooks: false })
  const found = { hardware_claims_mismatch: { detected: true, signals: ['cpu'] } }
  expect(sessionOf({ hooks: false, integrity: found }).risk_score).toBe(risk_score)
})

test('what an app found tells no machine from another', () => {
  const hashOf = (native: object) =>
    hashesOf(evaluateClient({ snapshot: { native } }).facts).snapshot_hash
  const bare: Snapshot['native'] = snapshotSchema.parse({ native: app }).native
  const detailed = snapshotSchema.parse({
    native: { ...app, install_time_epoch_ms: 5, integrity: { debugger: { tracer_pid: 7 } } },
  }).native
  expect(hashOf({ ...detailed })).toBe(hashOf({ ...bare }))
  expect(hashOf({ ...bare, device_model: 'Pixel 8' })).not.toBe(hashOf({ ...bare }))
})

test('what an app found is as the interface says, whatever an app sends', () => {
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
  ['two axes', { ...axes, bias: [1, 2] }],
  ['no number', { ...axes, noise: [1, 2, 'x'] }],
  ['nothing', null],
])('what an app found of sensors is whole or not there: %s', (_, gyro) => {
  expect(
    sessionOf({ motion: { sample_count: 1, gyro, accel: axes } }).native_motion_print,
  ).toBeNull()
})
