import {
  bool,
  count,
  group,
  isObject,
  type LenientParser,
  listOrNull,
  listUpTo,
  number,
  stringUpTo,
} from './lenient.ts'

// Unverified details that an app can report in addition to its flags: evidence for the flags, and sensor readings.

/** Parser of each member, and its meaning for the docs. */
type Members = Record<string, readonly [parser: LenientParser<unknown>, meaning: string]>

const text = stringUpTo(200)
const names = listUpTo(text, 32)
const namesOrNull = listOrNull(text, 32)
const signals = [names, "findings, in the app's own words"] as const

const finding = (meaning: string) => ({ detected: [bool, meaning], signals }) as const
const insertedLibraries = [namesOrNull, 'libraries named in `DYLD_INSERT_LIBRARIES`'] as const
const tracerPid = [count, '`TracerPid` of `/proc/self/status`; 0: none'] as const
const breakpointCount = [count, 'breakpoints in the process'] as const
const watchpointThreads = [count, 'threads with a watchpoint'] as const

const parts = {
  jailbreak_or_root: {
    signals,
    present_paths: [namesOrNull, 'files that exist only on jailbroken or rooted systems'],
    dyld_insert_libraries: insertedLibraries,
    verified_boot_state: [text, '`ro.boot.verifiedbootstate`, such as `green`'],
    magisk_mount_present: [bool, 'true if Magisk has a mount'],
    su_on_path: [bool, 'true if `su` is on the path'],
  },
  hooks: {
    frida_ports: [listOrNull(count, 32), "open ports of Frida's server"],
    frida_thread_names: [namesOrNull, 'threads named like those of Frida'],
    hooked_symbols: [namesOrNull, 'system functions that begin with a jump'],
    self_hooked_symbols: [namesOrNull, 'SDK functions that begin with a jump'],
    prologue_anomaly_count: [count, 'functions without a regular prologue'],
    unexpected_dyld_images: [namesOrNull, 'libraries in the process that are not part of the app'],
    xposed_packages: [namesOrNull, 'packages of Xposed and similar frameworks'],
  },
  debugger: {
    tracer_pid: tracerPid,
    breakpoint_count: breakpointCount,
    watchpoint_thread_count: watchpointThreads,
  },
  code_signing: {
    code_sign_valid: [bool, 'true if the system considers the signature valid'],
    text_integrity_ok: [bool, 'true if the code in memory matches the file'],
    application_debuggable: [bool, 'true if the app can be debugged'],
    dyld_insert_libraries: insertedLibraries,
  },
  simulator_or_emulator: {
    is_ios_app_on_mac: [bool, '`ProcessInfo.isiOSAppOnMac`'],
    qemu_files: [namesOrNull, 'QEMU files'],
    ro_hardware: [text, '`ro.hardware`'],
    ro_product_model: [text, '`ro.product.model`'],
    simulator_env_keys: [namesOrNull, 'names of environment variables that simulators set'],
  },
  debug_posture: {
    adb_enabled: [bool, '`Settings.Global.ADB_ENABLED`'],
    developer_options_enabled: [bool, '`Settings.Global.DEVELOPMENT_SETTINGS_ENABLED`'],
    app_debuggable: [bool, '`android:debuggable`'],
    app_profileable: [bool, '`android:profileable`'],
    app_test_only: [bool, '`android:testOnly`'],
    debugger_attached: [bool, '`Debug.isDebuggerConnected()`, or `P_TRACED`'],
    get_task_allow: [bool, 'the entitlement `get-task-allow`'],
    embedded_provisioning_profile_present: [
      bool,
      'true if the bundle has `embedded.mobileprovision`',
    ],
    receipt_is_sandbox: [bool, 'true if the App Store receipt is from the sandbox'],
    receipt_is_testflight: [bool, 'true if the app was installed through TestFlight'],
    development_bundle: [bool, 'true for development builds'],
    active_debugger_attached: [bool, 'true if a debugger stopped the process'],
    breakpoint_count: breakpointCount,
    exception_port_count: [count, 'exception ports held by other processes'],
    watchpoint_thread_count: watchpointThreads,
    tracer_pid: tracerPid,
    direct_syscall_tracer_pid: [count, '`TracerPid`, read by a direct system call'],
    risk_signals: signals,
  },
  hardware_claims_mismatch: finding('true if the hardware contradicts the reported model'),
  sim_posture: finding('true if the SIM looks unlike that of a phone in use'),
  app_provenance: finding('true if the app was not installed from a store'),
} as const satisfies Record<string, Members>

const upToThree = listOrNull(number, 3)
const vector: LenientParser<number[] | null> = {
  docType: '3 numbers',
  parse(value) {
    const numbers = upToThree.parse(value)
    return numbers?.length === 3 ? numbers : null
  },
}

const sensorStats: LenientParser<{ bias: number[]; noise: number[] } | null> = {
  docType: '{ bias, noise }, each 3 numbers',
  parse(value) {
    if (!isObject(value)) return null
    const [bias, noise] = [vector.parse(value.bias), vector.parse(value.noise)]
    return bias && noise ? { bias, noise } : null
  },
}

const motion = {
  sample_count: [count, 'number of readings per sensor'],
  gyro: [sensorStats, 'mean and standard deviation of the gyroscope at rest per axis, rad/s'],
  accel: [sensorStats, 'mean and standard deviation of the accelerometer at rest per axis, m/s²'],
  mag: [sensorStats, 'mean and standard deviation of the magnetometer at rest per axis, µT'],
} as const satisfies Members

type Parsers<M extends Members> = { [K in keyof M]: M[K][0] }

// The cast is safe: each member of M is mapped to its own parser.
const parsersOf = <M extends Members>(members: M) =>
  Object.fromEntries(Object.entries(members).map(([key, [parser]]) => [key, parser])) as Parsers<M>

/** Schema of `native.integrity` in the snapshot. */
export const nativeIntegritySchema = group({
  jailbreak_or_root: group(parsersOf(parts.jailbreak_or_root)),
  hooks: group(parsersOf(parts.hooks)),
  debugger: group(parsersOf(parts.debugger)),
  code_signing: group(parsersOf(parts.code_signing)),
  simulator_or_emulator: group(parsersOf(parts.simulator_or_emulator)),
  debug_posture: group(parsersOf(parts.debug_posture)),
  hardware_claims_mismatch: group(parsersOf(parts.hardware_claims_mismatch)),
  sim_posture: group(parsersOf(parts.sim_posture)),
  app_provenance: group(parsersOf(parts.app_provenance)),
})
/** Schema of `native.motion` in the snapshot. */
export const nativeMotionSchema = group(parsersOf(motion))

/** Members of each group for docs/reference/observations.md, by path within `native`. */
export const nativeDetail: Record<string, Members> = {
  ...Object.fromEntries(
    Object.entries(parts).map(([name, members]) => [`integrity.${name}`, members]),
  ),
  motion,
}
