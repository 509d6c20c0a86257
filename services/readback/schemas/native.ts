import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { nullableText } from './fingerprints.ts'

const platform = z.string().meta({ enum: ['ios', 'android'] })
const optionalFlag = z.boolean().optional()
const optionalNumber = z.number().optional()
const optionalTexts = z.array(z.string()).optional()
const optionalText = z.string().optional()
const detection = z.strictObject({ detected: z.boolean(), signals: z.array(z.string()) })

const jailbreakOrRoot = detection.extend({
  present_paths: optionalTexts,
  dyld_insert_libraries: optionalTexts,
  verified_boot_state: optionalText,
  magisk_mount_present: optionalFlag,
  su_on_path: optionalFlag,
})

const hooks = z.strictObject({
  detected: z.boolean(),
  frida_ports: z.array(z.number()).optional(),
  frida_thread_names: optionalTexts,
  hooked_symbols: optionalTexts,
  self_hooked_symbols: optionalTexts,
  prologue_anomaly_count: optionalNumber,
  unexpected_dyld_images: optionalTexts,
  xposed_packages: optionalTexts,
})

const debuggerState = z.strictObject({
  attached: z.boolean(),
  tracer_pid: optionalNumber,
  breakpoint_count: optionalNumber,
  watchpoint_thread_count: optionalNumber,
})

const codeSigning = z.strictObject({
  invalid: z.boolean(),
  code_sign_valid: optionalFlag,
  text_integrity_ok: optionalFlag,
  application_debuggable: optionalFlag,
  dyld_insert_libraries: optionalTexts,
})

const simulatorOrEmulator = z.strictObject({
  detected: z.boolean(),
  is_ios_app_on_mac: optionalFlag,
  qemu_files: optionalTexts,
  ro_hardware: optionalText,
  ro_product_model: optionalText,
  simulator_env_keys: optionalTexts,
})

const debugPosture = z.strictObject({
  detected: z.boolean(),
  adb_enabled: optionalFlag,
  developer_options_enabled: optionalFlag,
  app_debuggable: optionalFlag,
  app_profileable: optionalFlag,
  app_test_only: optionalFlag,
  debugger_attached: optionalFlag,
  get_task_allow: optionalFlag,
  embedded_provisioning_profile_present: optionalFlag,
  receipt_is_sandbox: optionalFlag,
  receipt_is_testflight: optionalFlag,
  development_bundle: optionalFlag,
  active_debugger_attached: optionalFlag,
  breakpoint_count: optionalNumber,
  exception_port_count: optionalNumber,
  watchpoint_thread_count: optionalNumber,
  tracer_pid: optionalNumber,
  direct_syscall_tracer_pid: optionalNumber,
  risk_signals: z.array(z.string()),
})

/** Members that the SDK could not read are absent, not null. */
export const nativeRuntimeIntegrity = z
  .strictObject({
    platform,
    jailbreak_or_root: jailbreakOrRoot,
    hooks,
    debugger: debuggerState,
    code_signing: codeSigning,
    simulator_or_emulator: simulatorOrEmulator,
    hardware_claims_mismatch: detection,
    sim_posture: detection,
    app_provenance: detection,
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

const sensorStats = z.strictObject({
  bias: z.array(z.number()).length(3),
  noise: z.array(z.number()).length(3),
})

export const nativeMotionPrint = z
  .strictObject({
    platform,
    sample_count: z.number(),
    gyro: sensorStats,
    accel: sensorStats,
    mag: sensorStats.nullable(),
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
