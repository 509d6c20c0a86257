import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { nullableText } from './fingerprints.ts'

const platform = z.string().meta({ enum: ['ios', 'android'] })
const flag = z.boolean().optional()
const amount = z.number().optional()
const texts = z.array(z.string()).optional()
const value = z.string().optional()
const signals = z.strictObject({ detected: z.boolean(), signals: z.array(z.string()) })

const jailbreakOrRoot = signals.extend({
  present_paths: texts,
  dyld_insert_libraries: texts,
  verified_boot_state: value,
  magisk_mount_present: flag,
  su_on_path: flag,
})

const hooks = z.strictObject({
  detected: z.boolean(),
  frida_ports: z.array(z.number()).optional(),
  frida_thread_names: texts,
  hooked_symbols: texts,
  self_hooked_symbols: texts,
  prologue_anomaly_count: amount,
  unexpected_dyld_images: texts,
  xposed_packages: texts,
})

const debuggerState = z.strictObject({
  attached: z.boolean(),
  tracer_pid: amount,
  breakpoint_count: amount,
  watchpoint_thread_count: amount,
})

const codeSigning = z.strictObject({
  invalid: z.boolean(),
  code_sign_valid: flag,
  text_integrity_ok: flag,
  application_debuggable: flag,
  dyld_insert_libraries: texts,
})

const simulatorOrEmulator = z.strictObject({
  detected: z.boolean(),
  is_ios_app_on_mac: flag,
  qemu_files: texts,
  ro_hardware: value,
  ro_product_model: value,
  simulator_env_keys: texts,
})

const debugPosture = z.strictObject({
  detected: z.boolean(),
  adb_enabled: flag,
  developer_options_enabled: flag,
  app_debuggable: flag,
  app_profileable: flag,
  app_test_only: flag,
  debugger_attached: flag,
  get_task_allow: flag,
  embedded_provisioning_profile_present: flag,
  receipt_is_sandbox: flag,
  receipt_is_testflight: flag,
  development_bundle: flag,
  active_debugger_attached: flag,
  breakpoint_count: amount,
  exception_port_count: amount,
  watchpoint_thread_count: amount,
  tracer_pid: amount,
  direct_syscall_tracer_pid: amount,
  risk_signals: z.array(z.string()),
})

/** Members that the SDK could not read are absent rather than null. */
export const nativeRuntimeIntegrity = z
  .strictObject({
    platform,
    jailbreak_or_root: jailbreakOrRoot,
    hooks,
    debugger: debuggerState,
    code_signing: codeSigning,
    simulator_or_emulator: simulatorOrEmulator,
    hardware_claims_mismatch: signals,
    sim_posture: signals,
    app_provenance: signals,
    debug_posture: debugPosture,
  })
  .meta({ id: 'SessionNativeRuntimeIntegrity' })

export const nativeApp = z
  .strictObject({
    bundle_id: z.string(),
    app_version: nullableText,
    app_build: nullableText,
    install_time_epoch_ms: z.number().nullable(),
    provisioning_team: nullableText,
  })
  .meta({ id: 'SessionNativeApp' })

export const nativeCarrier = z
  .strictObject({
    platform,
    carrier_name: nullableText,
    country_iso: nullableText,
    mcc: nullableText,
    mnc: nullableText,
    phone_type: nullableText,
    network_type: nullableText,
    radio_access: z.array(z.string()),
  })
  .meta({ id: 'SessionNativeCarrier' })

const axes = z.strictObject({
  bias: z.array(z.number()).length(3),
  noise: z.array(z.number()).length(3),
})

export const nativeMotionPrint = z
  .strictObject({
    platform,
    sample_count: z.number(),
    gyro: axes,
    accel: axes,
    mag: axes.nullable(),
  })
  .meta({ id: 'SessionNativeMotionPrint' })

export const deviceIdentity = z
  .strictObject({
    object: z.literal('device_identity'),
    id: z.string(),
    confidence: z.number(),
    source: z.string().meta({ enum: ['attested', 'anchored', 'inferred', 'new'] }),
    platform,
    identified_at: timestamp,
    lifecycle: z.strictObject({
      first_seen_at: timestamp,
      last_seen_at: timestamp,
      seen_count: z.number(),
    }),
    matched_anchors: z.array(z.string()),
  })
  .meta({ id: 'SessionDetailDeviceIdentity' })
