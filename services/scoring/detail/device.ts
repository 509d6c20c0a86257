import type { Device } from '../../../schemas/events.ts'
import type { Snapshot } from '../../../schemas/observations.ts'
import type { Facts } from '../facts.ts'
import { clientHint } from './hints.ts'

/** The device as it describes itself; null = not known. */
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

/** Chromium freezes the version in its user agent string and tells the real one as a client hint only. */
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
