import type {
  Device,
  NativeApp,
  NativeCarrier,
  NativeRuntimeIntegrity,
  SessionScored,
} from '../../schemas/events.ts'
import type { Snapshot } from '../../schemas/observations.ts'
import { clientHint, type Facts } from './session/facts.ts'

export function deviceOf(facts: Facts): Device {
  const { snapshot } = facts
  return {
    form_factor: formFactorOf(facts),
    operating_system: operatingSystemOf(facts),
    architecture: architectureOf(facts),
    screen: screenOf(snapshot),
    locale: {
      timezone: snapshot?.environment.timezone ?? null,
      primary_language: snapshot?.navigator.language ?? null,
      languages: snapshot?.navigator.languages ?? [],
    },
    capabilities: capabilitiesOf(snapshot),
  }
}

/** `1440x900` in CSS pixels, null when not reported. */
export function screenSize(snapshot: Snapshot | null): string | null {
  const { screen_width: width, screen_height: height } = snapshot?.environment ?? {}
  return width && height ? `${width}x${height}` : null
}

export function isTouchCapable(snapshot: Snapshot | null): boolean | null {
  const points = snapshot?.navigator.max_touch_points ?? null
  return snapshot?.capabilities.touch ?? (points === null ? null : points > 0)
}

function formFactorOf({ agent, platform, snapshot }: Facts): string {
  if (/iPad|tablet/i.test(snapshot?.native?.device_model ?? '')) return 'tablet'
  // An iPad asks for desktop sites under the name of a Mac.
  if (agent.system === 'macos' && (snapshot?.navigator.max_touch_points ?? 0) > 1) return 'tablet'
  return agent.formFactor === 'unknown' && platform !== 'web' ? 'mobile' : agent.formFactor
}

function operatingSystemOf(facts: Facts): Device['operating_system'] {
  const { agent, platform, snapshot } = facts
  if (platform !== 'web') {
    const own = platform === 'ios' ? 'iOS' : 'Android'
    return {
      name: snapshot?.native?.os_name ?? own,
      version: snapshot?.native?.os_version ?? agent.systemVersion,
    }
  }
  const hinted = snapshot?.navigator.ua_data_platform || clientHint(facts, 'sec-ch-ua-platform')
  return { name: hinted || agent.systemName, version: systemVersion(facts) }
}

// Chromium freezes the version in its user agent string and tells the real one as a client hint only.
function systemVersion({ agent, snapshot }: Facts): string | null {
  const hinted = snapshot?.navigator.ua_data_platform_version || null
  if (agent.system !== 'windows') return hinted ?? agent.systemVersion
  if (hinted) return Number.parseInt(hinted, 10) >= 13 ? '11' : '10'
  return agent.systemVersion?.replace(/^NT /, '') ?? null
}

function architectureOf(facts: Facts): string | null {
  const { snapshot } = facts
  return (
    snapshot?.native?.architecture ??
    (snapshot?.navigator.ua_data_architecture || clientHint(facts, 'sec-ch-ua-arch'))
  )
}

function screenOf(snapshot: Snapshot | null): Device['screen'] {
  return {
    size: screenSize(snapshot),
    color_depth: snapshot?.environment.color_depth ?? null,
    pixel_ratio: snapshot?.environment.pixel_ratio ?? null,
    orientation_type: snapshot?.environment.orientation_type ?? null,
  }
}

function capabilitiesOf(snapshot: Snapshot | null): Device['capabilities'] {
  const { capabilities, storage } = snapshot ?? {}
  return {
    touch: {
      available: isTouchCapable(snapshot),
      max_touch_points: snapshot?.navigator.max_touch_points ?? null,
    },
    storage: {
      cookies: storage?.cookies ?? null,
      local_storage: storage?.local_storage ?? null,
      indexed_db: storage?.indexed_db ?? null,
      service_worker: storage?.service_worker ?? null,
      window_name: storage?.window_name ?? null,
    },
    webgpu: { available: capabilities?.webgpu ?? snapshot?.webgpu.available ?? null },
    platform_authenticator: {
      available: capabilities?.platform_authenticator ?? null,
      conditional_mediation: capabilities?.conditional_mediation ?? null,
    },
    media_devices: { available: capabilities?.media_devices ?? null },
    speech_synthesis: { available: capabilities?.speech_synthesis ?? null },
  }
}

type Native = NonNullable<Snapshot['native']>
type AppPlatform = 'ios' | 'android'
type NativeDetail = Pick<
  SessionScored,
  | 'native_runtime_integrity'
  | 'native_app'
  | 'native_carrier'
  | 'native_motion_print'
  | 'device_identity'
  | 'install_id'
>

const none: NativeDetail = {
  native_runtime_integrity: null,
  native_app: null,
  native_carrier: null,
  native_motion_print: null,
  device_identity: null,
  install_id: null,
}

/** Members of iOS and Android sessions; all null for the web, and where the SDK reported nothing. */
export function nativeDetailOf({ platform, snapshot }: Facts): NativeDetail {
  const native = snapshot?.native
  if (platform === 'web' || !native) return none
  return {
    ...none,
    native_runtime_integrity: integrityOf(native, platform),
    native_app: appOf(native),
    native_carrier: carrierOf(native, platform),
    install_id: native.install_id,
  }
}

function appOf({ bundle_id, app_version, app_build }: Native): NativeApp | null {
  if (bundle_id === null) return null
  return { bundle_id, app_version, app_build, install_time_epoch_ms: null, provisioning_team: null }
}

function carrierOf({ carrier_name, country_iso }: Native, platform: AppPlatform): NativeCarrier | null {
  if (carrier_name === null && country_iso === null) return null
  const unknown = { mcc: null, mnc: null, phone_type: null, network_type: null, radio_access: [] }
  return { platform, carrier_name, country_iso, ...unknown }
}

// Null when the app reported none of it: a missing check is not a passed one.
function integrityOf(native: Native, platform: AppPlatform): NativeRuntimeIntegrity | null {
  const { jailbreak_or_root, hooks, simulator_or_emulator, code_signing_invalid } = native
  const reports = [jailbreak_or_root, hooks, native.debugger, simulator_or_emulator, code_signing_invalid]
  if (reports.every((report) => report === null)) return null
  const unseen = { detected: false, signals: [] }
  return {
    platform,
    jailbreak_or_root: { ...noRootDetail, detected: jailbreak_or_root === true },
    hooks: { ...noHookDetail, detected: hooks === true },
    debugger: { ...noDebuggerDetail, attached: native.debugger === true },
    code_signing: { ...noSigningDetail, invalid: code_signing_invalid === true },
    simulator_or_emulator: { ...noEmulatorDetail, detected: simulator_or_emulator === true },
    hardware_claims_mismatch: unseen,
    sim_posture: unseen,
    app_provenance: unseen,
    debug_posture: { ...noPostureDetail, detected: native.debugger === true },
  }
}

const noRootDetail = {
  signals: [],
  present_paths: null,
  dyld_insert_libraries: null,
  verified_boot_state: null,
  magisk_mount_present: null,
  su_on_path: null,
}
const noHookDetail = {
  frida_ports: null,
  frida_thread_names: null,
  hooked_symbols: null,
  self_hooked_symbols: null,
  prologue_anomaly_count: null,
  unexpected_dyld_images: null,
  xposed_packages: null,
}
const noDebuggerDetail = { tracer_pid: null, breakpoint_count: null, watchpoint_thread_count: null }
const noSigningDetail = {
  code_sign_valid: null,
  text_integrity_ok: null,
  application_debuggable: null,
  dyld_insert_libraries: null,
}
const noEmulatorDetail = {
  is_ios_app_on_mac: null,
  qemu_files: null,
  ro_hardware: null,
  ro_product_model: null,
  simulator_env_keys: null,
}
const noPostureDetail = {
  adb_enabled: null,
  developer_options_enabled: null,
  app_debuggable: null,
  app_profileable: null,
  app_test_only: null,
  debugger_attached: null,
  get_task_allow: null,
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
}
