import {
  amount,
  boolean,
  double,
  flag,
  listOf,
  orNull,
  record,
  string,
  strings,
  text,
  texts,
} from '../avro.ts'

const nativeJailbreakOrRoot = record('NativeJailbreakOrRoot', {
  detected: boolean,
  signals: strings,
  present_paths: texts,
  dyld_insert_libraries: texts,
  verified_boot_state: text,
  magisk_mount_present: flag,
  su_on_path: flag,
})

const nativeHooks = record('NativeHooks', {
  detected: boolean,
  frida_ports: orNull(listOf(double)),
  frida_thread_names: texts,
  hooked_symbols: texts,
  self_hooked_symbols: texts,
  prologue_anomaly_count: amount,
  unexpected_dyld_images: texts,
  xposed_packages: texts,
})

const nativeDebugger = record('NativeDebugger', {
  attached: boolean,
  tracer_pid: amount,
  breakpoint_count: amount,
  watchpoint_thread_count: amount,
})

const nativeCodeSigning = record('NativeCodeSigning', {
  invalid: boolean,
  code_sign_valid: flag,
  text_integrity_ok: flag,
  application_debuggable: flag,
  dyld_insert_libraries: texts,
})

const nativeSimulatorOrEmulator = record('NativeSimulatorOrEmulator', {
  detected: boolean,
  is_ios_app_on_mac: flag,
  qemu_files: texts,
  ro_hardware: text,
  ro_product_model: text,
  simulator_env_keys: texts,
})

const nativeDebugPosture = record('NativeDebugPosture', {
  detected: boolean,
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
  risk_signals: strings,
})

export const nativeRuntimeIntegrity = record('NativeRuntimeIntegrity', {
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

export const nativeApp = record('NativeApp', {
  bundle_id: string,
  app_version: text,
  app_build: text,
  install_time_epoch_ms: amount,
  provisioning_team: text,
})

export const nativeCarrier = record('NativeCarrier', {
  platform: string,
  carrier_name: text,
  country_iso: text,
  mcc: text,
  mnc: text,
  phone_type: text,
  network_type: text,
  radio_access: strings,
})

const nativeMotionAxes = record('NativeMotionAxes', { bias: listOf(double), noise: listOf(double) })

export const nativeMotionPrint = record('NativeMotionPrint', {
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
