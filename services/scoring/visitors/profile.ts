import { hash } from 'node:crypto'
import { networkPrefix } from '../../../infra/ip/network.ts'
import type { VisitorAnchors, VisitorStorage } from '../../../schemas/events.ts'
import type { Snapshot } from '../../../schemas/observations.ts'
import type { Agent } from '../session/agent.ts'
import type { Facts } from '../session/facts.ts'
import { isSoftwareRendered } from '../signals/headless.ts'

/** Fingerprint of a browser on a device. */
export interface Profile {
  /** Short hashes in the order of `components`; null = unknown, or noise was added. */
  components: (string | null)[]
  /** IPv4 /24 or IPv6 /48 network of the session. */
  network: string | null
  /** True if the profile can identify a single device; see `isDistinctive`. */
  distinctive: boolean
}

/** Names of the components, in the order in which profiles and vectors store them. */
export const components = [
  'system',
  'browser',
  'browser_version',
  'platform',
  'screen',
  'pixel_ratio',
  'timezone',
  'languages',
  'processors',
  'memory',
  'webgl_renderer',
  'webgl_parameters',
  'webgl_extensions',
  'canvas',
  'audio',
  'fonts',
  'voices',
  'media',
] as const
export type ComponentName = (typeof components)[number]

type Values = Record<ComponentName, string | number | null>

export function profileOf(facts: Facts): Profile | null {
  const { snapshot, agent, network } = facts
  if (!snapshot) return null
  const values = valuesOf(snapshot, agent)
  return {
    components: components.map((name) => shortHash(name, values[name])),
    network: networkPrefix(network.ip_address ?? ''),
    distinctive: isDistinctive(facts, values),
  }
}

function valuesOf(snapshot: Snapshot, agent: Agent): Values {
  const { navigator, environment, canvas, audio, webgl, fonts, media } = snapshot
  return {
    system: agent.system === 'other' ? null : agent.system,
    browser: agent.browser,
    browser_version: agent.major,
    platform: snapshot.native?.device_model ?? navigator.platform,
    screen: screenOf(environment),
    pixel_ratio: environment.pixel_ratio,
    timezone: environment.timezone,
    languages: navigator.languages.join() || null,
    processors: navigator.hardware_concurrency,
    memory: navigator.device_memory,
    webgl_renderer: webgl.renderer,
    webgl_parameters: webgl.parameters_hash,
    webgl_extensions: webgl.extensions_hash,
    // Noise differs between visits or sites, so a hash of it would mislead.
    canvas: canvas.noise_detected === true ? null : canvas.hash,
    audio: audio.noise_detected === true ? null : audio.hash,
    fonts: fonts.enumeration_hash ?? fonts.metrics_hash,
    voices: audio.voice_count,
    media: media.topology_hash,
  }
}

// Puts the longer side first, so that rotating a phone changes nothing.
function screenOf({
  screen_width: w,
  screen_height: h,
  color_depth,
}: Snapshot['environment']): string | null {
  return w === null || h === null
    ? null
    : `${Math.max(w, h)}x${Math.min(w, h)}x${color_depth ?? ''}`
}

// Only a desktop whose graphics, fonts and audio are all known is distinctive. Phones of one model are identical, as
// are Macs in Safari, which all report one graphics card, and machines with software rendering.
function isDistinctive(facts: Facts, values: Values): boolean {
  const { agent, snapshot, privacyTool } = facts
  const distinguishing = [
    values.webgl_renderer,
    values.webgl_parameters,
    values.canvas,
    values.audio,
    values.fonts,
  ]
  const isPhone =
    agent.system === 'ios' || agent.formFactor !== 'desktop' || snapshot?.native !== null
  const isUniform = isPhone || values.webgl_renderer === 'Apple GPU' || isSoftwareRendered(facts)
  return !isUniform && !privacyTool && distinguishing.every((value) => value !== null)
}

export type Uniqueness = 'distinctive' | 'uniform' | 'none'

/**
 * Returns how well a profile identifies a browser. `uniform` profiles need their network to do so. Phones are identical
 * even within a home, and browsers that hide their canvas can't be told from each other: both are `none`.
 */
export function uniquenessOf(profile: Profile): Uniqueness {
  if (profile.distinctive) return 'distinctive'
  const isHidden = component(profile, 'canvas') === null
  return isHidden || phones.has(component(profile, 'system')) ? 'none' : 'uniform'
}

function shortHash(name: string, value: string | number | null): string | null {
  if (value === null || value === '') return null
  return hash('sha256', `${name}\0${value}`).slice(0, 12)
}

/** Returns the components as numbers from 0 to 1, or -1 if unknown. Equal values have equal numbers. */
export function vectorOf(profile: Profile | null): number[] {
  return (profile?.components ?? []).map((hash) =>
    hash === null ? -1 : Number((Number.parseInt(hash, 16) / 2 ** 48).toFixed(6)),
  )
}

const phones = new Set<string | null>(
  ['ios', 'android'].map((system) => shortHash('system', system)),
)

export function component(profile: Profile, name: ComponentName): string | null {
  return profile.components[components.indexOf(name)] ?? null
}

export function anchorsOf(snapshot: Snapshot | null): VisitorAnchors {
  const text = (value: string | number | null | undefined) => (value == null ? null : String(value))
  return {
    webgl_hash: text(snapshot?.webgl.extensions_hash ?? snapshot?.webgl.parameters_hash),
    parameters_hash: text(snapshot?.webgl.parameters_hash),
    audio_hash: text(snapshot?.audio.hash),
  }
}

export function storageOf(snapshot: Snapshot | null): VisitorStorage {
  const { storage } = snapshot ?? {}
  return {
    cookies: storage?.cookies === true,
    local_storage: storage?.local_storage === true,
    indexed_db: storage?.indexed_db === true,
    service_worker: storage?.service_worker === true,
    window_name: storage?.window_name === true,
  }
}
