import {
  bool,
  count,
  group,
  isObject,
  type Lenient,
  listOrNull,
  listUpTo,
  number,
  stringUpTo,
} from './lenient.ts'

// What an app may say beside its flags: how it came to them, and what it measured. Each member has its form and its meaning in
// one place. Nothing of it is verified.

type Members = Record<string, readonly [form: Lenient<unknown>, meaning: string]>

const text = stringUpTo(200)
const names = listUpTo(text, 32)
const namesOrNull = listOrNull(text, 32)
const signals = [names, 'what of it was found, in words of its own choosing'] as const

const finding = (detected: string) => ({ detected: [bool, detected], signals }) as const
const inserted = [namesOrNull, 'libraries that `DYLD_INSERT_LIBRARIES` names'] as const
const tracer = [count, '`TracerPid` of `/proc/self/status`; 0 = none'] as const
const breakpoints = [count, 'breakpoints in the process'] as const
const watchpoints = [count, 'threads with a watchpoint'] as const

const parts = {
  jailbreak_or_root: {
    signals,
    present_paths: [namesOrNull, 'files that only such a system has'],
    dyld_insert_libraries: inserted,
    verified_boot_state: [text, '`ro.boot.verifiedbootstate`, such as `green`'],
    magisk_mount_present: [bool, 'whether Magisk has mounted something'],
    su_on_path: [bool, 'whether `su` is found on the path'],
  },
  hooks: {
    frida_ports: [listOrNull(count, 32), "open ports of Frida's server"],
    frida_thread_names: [namesOrNull, 'threads that are called as those of Frida'],
    hooked_symbols: [namesOrNull, 'functions of the system that begin with a jump'],
    self_hooked_symbols: [namesOrNull, "the SDK's own functions that do"],
    prologue_anomaly_count: [count, 'functions that do not begin as compilers write it'],
    unexpected_dyld_images: [namesOrNull, 'libraries in the process that the app did not bring'],
    xposed_packages: [namesOrNull, 'packages of Xposed and its like'],
  },
  debugger: {
    tracer_pid: tracer,
    breakpoint_count: breakpoints,
    watchpoint_thread_count: watchpoints,
  },
  code_signing: {
    code_sign_valid: [bool, 'whether the system calls the signature valid'],
    text_integrity_ok: [bool, 'whether the code in memory is that of the file'],
    application_debuggable: [bool, 'whether the app may be debugged'],
    dyld_insert_libraries: inserted,
  },
  simulator_or_emulator: {
    is_ios_app_on_mac: [bool, '`ProcessInfo.isiOSAppOnMac`'],
    qemu_files: [namesOrNull, 'files of QEMU'],
    ro_hardware: [text, '`ro.hardware`'],
    ro_product_model: [text, '`ro.product.model`'],
    simulator_env_keys: [namesOrNull, 'environment variables that simulators set, by name'],
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
      'whether the bundle has `embedded.mobileprovision`',
    ],
    receipt_is_sandbox: [bool, "whether the App Store's receipt is of its sandbox"],
    receipt_is_testflight: [bool, 'whether the app came by TestFlight'],
    development_bundle: [bool, 'whether it was built for development'],
    active_debugger_attached: [bool, 'whether a debugger has stopped the process'],
    breakpoint_count: breakpoints,
    exception_port_count: [count, 'exception ports that others hold'],
    watchpoint_thread_count: watchpoints,
    tracer_pid: tracer,
    direct_syscall_tracer_pid: [count, 'the same, by a system call of its own'],
    risk_signals: signals,
  },
  hardware_claims_mismatch: finding(
    'whether the hardware is not that of the model that the system names',
  ),
  sim_posture: finding('whether the SIM is not as in a phone that somebody uses'),
  app_provenance: finding('whether the app did not come from a store'),
} as const satisfies Record<string, Members>

const upToThree = listOrNull(number, 3)
const vector: Lenient<number[] | null> = {
  form: '3 numbers',
  parse(value) {
    const read = upToThree.parse(value)
    return read?.length === 3 ? read : null
  },
}

const axes: Lenient<{ bias: number[]; noise: number[] } | null> = {
  form: '{ bias, noise }, each 3 numbers',
  parse(value) {
    const { bias, noise } = isObject(value) ? value : {}
    const read = { bias: vector.parse(bias), noise: vector.parse(noise) }
    return read.bias && read.noise ? { bias: read.bias, noise: read.noise } : null
  },
}

const motion = {
  sample_count: [count, 'how many readings there were of each sensor'],
  gyro: [axes, 'mean and standard deviation of the gyroscope at rest by axis, radians per second'],
  accel: [axes, 'the same of the accelerometer, m/s²'],
  mag: [axes, 'the same of the magnetometer, µT'],
} as const satisfies Members

type Forms<M extends Members> = { [K in keyof M]: M[K][0] }

// The loop gave every member of M its own form.
const formsOf = <M extends Members>(members: M) =>
  Object.fromEntries(Object.entries(members).map(([name, [form]]) => [name, form])) as Forms<M>

/** `native.integrity` of the snapshot. Of `{}` it is what an app says that reports nothing of it. */
export const nativeIntegritySchema = group({
  jailbreak_or_root: group(formsOf(parts.jailbreak_or_root)),
  hooks: group(formsOf(parts.hooks)),
  debugger: group(formsOf(parts.debugger)),
  code_signing: group(formsOf(parts.code_signing)),
  simulator_or_emulator: group(formsOf(parts.simulator_or_emulator)),
  debug_posture: group(formsOf(parts.debug_posture)),
  hardware_claims_mismatch: group(formsOf(parts.hardware_claims_mismatch)),
  sim_posture: group(formsOf(parts.sim_posture)),
  app_provenance: group(formsOf(parts.app_provenance)),
})
/** `native.motion` of the snapshot. */
export const nativeMotionSchema = group(formsOf(motion))

/** Tables of docs/reference/observations.md, by the path of the group within `native`. */
export const nativeDetail: Record<string, Members> = {
  ...Object.fromEntries(
    Object.entries(parts).map(([name, members]) => [`integrity.${name}`, members]),
  ),
  motion,
}
