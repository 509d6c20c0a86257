import {
  amountOrNull,
  boolean,
  double,
  flagOrNull,
  listOf,
  orNull,
  record,
  string,
  strings,
  textOrNull,
  textsOrNull,
} from '../avro.ts'

const nativeJailbreakOrRoot = record('NativeJailbreakOrRoot', {
  detected: boolean,
  signals: strings,
  present_paths: textsOrNull,
  dyld_insert_libraries: textsOrNull,
  verified_boot_state: textOrNull,
  magisk_mount_present: flagOrNull,
  su_on_path: flagOrNull,
})

const nativeHooks = record('NativeHooks', {
  detected: boolean,
  frida_ports: orNull(listOf(double)),
  frida_thread_names: textsOrNull,
  hooked_symbols: textsOrNull,
  self_hooked_symbols: textsOrNull,
  prologue_anomaly_count: amountOrNull,
  unexpected_dyld_images: textsOrNull,
  xposed_packages: textsOrNull,
})

const nativeDebugger = record('NativeDebugger', {
  attached: boolean,
  tracer_pid: amountOrNull,
  breakpoint_count: amountOrNull,
  watchpoint_thread_count: amountOrNull,
})

const nativeCodeSigning = record('NativeCodeSigning', {
  invalid: boolean,
  code_sign_valid: flagOrNull,
  text_integrity_ok: flagOrNull,
  application_debuggable: flagOrNull,
  dyld_insert_libraries: textsOrNull,
})

const nativeSimulatorOrEmulator = record('NativeSimulatorOrEmulator', {
  detected: boolean,
  is_ios_app_on_mac: flagOrNull,
  qemu_files: textsOrNull,
  ro_hardware: textOrNull,
  ro_product_model: textOrNull,
  simulator_env_keys: textsOrNull,
})

const nativeDebugPosture = record('NativeDebugPosture', {
  detected: boolean,
  adb_enabled: flagOrNull,
  developer_options_enabled: flagOrNull,
  app_debuggable: flagOrNull,
  app_profileable: flagOrNull,
  app_test_only: flagOrNull,
  debugger_attached: flagOrNull,
  get_task_allow: flagOrNull,
  embedded_provisioning_profile_present: flagOrNull,
  receipt_is_sandbox: flagOrNull,
  receipt_is_testflight: flagOrNull,
  development_bundle: flagOrNull,
  active_debugger_attached: flagOrNull,
  breakpoint_count: amountOrNull,
  exception_port_count: amountOrNull,
  watchpoint_thread_count: amountOrNull,
  tracer_pid: amountOrNull,
  direct_syscall_tracer_pid: amountOrNull,
  risk_signals: strings,
})

export const nativeRuntimeIntegrityRecord = record('NativeRuntimeIntegrity', {
  platform: string,
  jailbreak_or_root: nativeJailbreakOrRoot,
  hooks: nativeHooks,
  debugger: nativeDebugger,
  code_signing: nativeCodeSigning,
  simulator_or_emulator: nativeSimulatorOrEmulator,
  hardware_claims_mismatch: record('NativeHardwareClaimsMismatch', { detected: boolean, signals: strings }),
  sim_posture: record('NativeSimPosture', { detected: boolean, signals: strings }),
  app_provenance: record('NativeAppProvenance', { detected: boolean, signals: strings }),
  debug_posture: nativeDebugPosture,
})

export const nativeAppRecord = record('NativeApp', {
  bundle_id: string,
  app_version: textOrNull,
  app_build: textOrNull,
  install_time_epoch_ms: amountOrNull,
  provisioning_team: textOrNull,
})

export const nativeCarrierRecord = record('NativeCarrier', {
  platform: string,
  carrier_name: textOrNull,
  country_iso: textOrNull,
  mcc: textOrNull,
  mnc: textOrNull,
  phone_type: textOrNull,
  network_type: textOrNull,
  radio_access: strings,
})

const nativeMotionAxes = record('NativeMotionAxes', { bias: listOf(double), noise: listOf(double) })

export const nativeMotionPrintRecord = record('NativeMotionPrint', {
  platform: string,
  sample_count: double,
  gyro: nativeMotionAxes,
  accel: nativeMotionAxes,
  mag: orNull(nativeMotionAxes),
})

export const detailDeviceIdentity = record('DetailDeviceIdentity', {
  object: string,
  id: string,
  confidence: double,
  source: string,
  platform: string,
  identified_at: string,
  lifecycle: record('DetailDeviceIdentityLifecycle', {
    first_seen_at: string,
    last_seen_at: string,
    seen_count: double,
  }),
  matched_anchors: strings,
})
