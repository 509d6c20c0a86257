import { iso } from '../../infra/iso.ts'
import type {
  Device,
  NativeApp,
  NativeCarrier,
  NativeMotionPrint,
  NativeRuntimeIntegrity,
  SessionScored,
} from '../../schemas/events.ts'
import { nativeIntegritySchema } from '../../schemas/native-detail.ts'
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

/** Returns the size in CSS pixels, such as `1440x900`; null if it was not reported. */
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
  // iPads request desktop sites with the user agent of a Mac.
  if (agent.system === 'macos' && (snapshot?.navigator.max_touch_points ?? 0) > 1) return 'tablet'
  return agent.formFactor === 'unknown' && platform !== 'web' ? 'mobile' : agent.formFactor
}

function operatingSystemOf(facts: Facts): Device['operating_system'] {
  const { agent, platform, snapshot } = facts
  if (platform !== 'web') {
    const defaultName = platform === 'ios' ? 'iOS' : 'Android'
    return {
      name: snapshot?.native?.os_name ?? defaultName,
      version: snapshot?.native?.os_version ?? agent.systemVersion,
    }
  }
  const hinted = snapshot?.navigator.ua_data_platform || clientHint(facts, 'sec-ch-ua-platform')
  return { name: hinted || agent.systemName, version: systemVersion(facts) }
}

// Chromium freezes the version in its user agent string and sends the real one only as a client hint.
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
export type NativeDetail = Pick<
  SessionScored,
  | 'native_runtime_integrity'
  | 'native_app'
  | 'native_carrier'
  | 'native_motion_print'
  | 'device_identity'
  | 'install_id'
>

const noNativeDetail: NativeDetail = {
  native_runtime_integrity: null,
  native_app: null,
  native_carrier: null,
  native_motion_print: null,
  device_identity: null,
  install_id: null,
}

/** Returns the members of iOS and Android sessions. All are null for web sessions, and if the SDK reported nothing. */
export function nativeDetailOf({ platform, snapshot, attestation }: Facts): NativeDetail {
  const native = snapshot?.native
  if (platform === 'web') return noNativeDetail
  const device_identity = identityOf(attestation, platform)
  if (!native) return { ...noNativeDetail, device_identity }
  return {
    ...noNativeDetail,
    device_identity,
    native_runtime_integrity: integrityOf(native, platform),
    native_app: appOf(native),
    native_carrier: carrierOf(native, platform),
    native_motion_print: motionOf(native, platform),
    install_id: native.install_id,
  }
}

function identityOf(
  attestation: Facts['attestation'],
  platform: AppPlatform,
): NativeDetail['device_identity'] {
  if (!attestation?.device) return null
  const { id, first_seen_at, last_seen_at, seen_count } = attestation.device
  return {
    object: 'device_identity',
    id,
    platform,
    // Either the key never leaves the device, or the id belongs to a genuine app.
    confidence: 100,
    source: 'attested',
    identified_at: iso(last_seen_at),
    lifecycle: { first_seen_at: iso(first_seen_at), last_seen_at: iso(last_seen_at), seen_count },
    matched_anchors: [attestation.method === 'play_integrity' ? 'install_id' : 'attested_key'],
  }
}

function appOf({ bundle_id, app_version, app_build, ...native }: Native): NativeApp | null {
  if (bundle_id === null) return null
  const { install_time_epoch_ms = null, provisioning_team = null } = native
  return { bundle_id, app_version, app_build, install_time_epoch_ms, provisioning_team }
}

function carrierOf(native: Native, platform: AppPlatform): NativeCarrier | null {
  const { carrier_name, country_iso, mcc = null, mnc = null } = native
  const { phone_type = null, network_type = null, radio_access = [] } = native
  const values = [carrier_name, country_iso, mcc, mnc, phone_type, network_type]
  if (values.every((value) => value === null) && radio_access.length === 0) return null
  return { platform, carrier_name, country_iso, mcc, mnc, phone_type, network_type, radio_access }
}

const noIntegrityDetail = nativeIntegritySchema.parse({})

// Returns null if the app reported no check, because a missing check is not a passed one.
function integrityOf(native: Native, platform: AppPlatform): NativeRuntimeIntegrity | null {
  const {
    jailbreak_or_root,
    hooks,
    simulator_or_emulator,
    code_signing_invalid,
    integrity = null,
  } = native
  const reports = [
    jailbreak_or_root,
    hooks,
    native.debugger,
    simulator_or_emulator,
    code_signing_invalid,
  ]
  if (integrity === null && reports.every((report) => report === null)) return null
  const detail = integrity ?? noIntegrityDetail
  return {
    platform,
    jailbreak_or_root: { ...detail.jailbreak_or_root, detected: jailbreak_or_root === true },
    hooks: { ...detail.hooks, detected: hooks === true },
    debugger: { ...detail.debugger, attached: native.debugger === true },
    code_signing: { ...detail.code_signing, invalid: code_signing_invalid === true },
    simulator_or_emulator: {
      ...detail.simulator_or_emulator,
      detected: simulator_or_emulator === true,
    },
    hardware_claims_mismatch: findingOf(detail.hardware_claims_mismatch),
    sim_posture: findingOf(detail.sim_posture),
    app_provenance: findingOf(detail.app_provenance),
    debug_posture: { ...detail.debug_posture, detected: native.debugger === true },
  }
}

const findingOf = ({ detected, signals }: { detected: boolean | null; signals: string[] }) => ({
  detected: detected === true,
  signals,
})

function motionOf({ motion = null }: Native, platform: AppPlatform): NativeMotionPrint | null {
  const { sample_count = null, gyro = null, accel = null, mag = null } = motion ?? {}
  return sample_count === null || !gyro || !accel
    ? null
    : { platform, sample_count, gyro, accel, mag }
}
