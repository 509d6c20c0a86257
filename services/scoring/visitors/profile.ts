import { createHash, hash } from 'node:crypto'
import { networkPrefix } from '../../../infra/ip/network.ts'
import type { Environment, VisitorAnchors, VisitorLinked, VisitorStorage } from '../../../schemas/events.ts'
import type { Snapshot } from '../../../schemas/observations.ts'
import type { Agent } from '../agent.ts'
import type { Facts } from '../facts.ts'
import type { SessionState } from '../session-state.ts'
import { isSoftwareRendered } from '../signals/headless.ts'

/** What a browser on a device looks like, as short hashes; null = unknown or made noisy on purpose. */
export interface Profile {
  components: (string | null)[]
  /** The network that it was last seen in: IPv4 /24 or IPv6 /48. */
  network: string | null
  distinctive: boolean
}

/** What is compared, and how much an agreement says; the order is that of the component vector. */
export const components = [
  { name: 'system', weight: 4 },
  { name: 'browser', weight: 3 },
  { name: 'browser_version', weight: 1 },
  { name: 'platform', weight: 2 },
  { name: 'screen', weight: 4 },
  { name: 'pixel_ratio', weight: 2 },
  { name: 'timezone', weight: 4 },
  { name: 'languages', weight: 4 },
  { name: 'processors', weight: 3 },
  { name: 'memory', weight: 2 },
  { name: 'webgl_renderer', weight: 6 },
  { name: 'webgl_parameters', weight: 5 },
  { name: 'webgl_extensions', weight: 3 },
  { name: 'canvas', weight: 7 },
  { name: 'audio', weight: 4 },
  { name: 'fonts', weight: 7 },
  { name: 'voices', weight: 3 },
  { name: 'media', weight: 4 },
] as const

type Values = Record<(typeof components)[number]['name'], string | number | null>

export function profileOf(facts: Facts): Profile | null {
  const { snapshot, agent, network } = facts
  if (!snapshot) return null
  const values = valuesOf(snapshot, agent)
  return {
    components: components.map(({ name }) => shortHash(name, values[name])),
    network: networkPrefix(network.ip_address ?? ''),
    distinctive: isDistinctive(facts, values),
  }
}

function valuesOf(s: Snapshot, agent: Agent): Values {
  const { navigator: n, environment: e, canvas, audio, webgl, fonts, media } = s
  return {
    system: agent.system === 'other' ? null : agent.system,
    browser: agent.browser,
    browser_version: agent.major,
    platform: n.platform,
    screen: screenOf(e),
    pixel_ratio: e.pixel_ratio,
    timezone: e.timezone,
    languages: n.languages.join() || null,
    processors: n.hardware_concurrency,
    memory: n.device_memory,
    webgl_renderer: webgl.renderer,
    webgl_parameters: webgl.parameters_hash,
    webgl_extensions: webgl.extensions_hash,
    // Noise is drawn anew for each visit or site and would only mislead.
    canvas: canvas.noise_detected === true ? null : canvas.hash,
    audio: audio.noise_detected === true ? null : audio.hash,
    fonts: fonts.enumeration_hash ?? fonts.metrics_hash,
    voices: audio.voice_count,
    media: media.topology_hash,
  }
}

// Longer side first, so that turning a phone changes nothing.
function screenOf({
  screen_width: w,
  screen_height: h,
  color_depth,
}: Snapshot['environment']): string | null {
  return w === null || h === null ? null : `${Math.max(w, h)}x${Math.min(w, h)}x${color_depth ?? ''}`
}

// Phones of one model are alike to the last pixel, and so are headless machines that draw in software: neither
// can be told from its twins. A desktop whose graphics, fonts and sound are all known can.
function isDistinctive(facts: Facts, values: Values): boolean {
  const { agent, snapshot, privacyTool } = facts
  const telling = [values.webgl_renderer, values.webgl_parameters, values.canvas, values.audio, values.fonts]
  const isUniform = agent.system === 'ios' || agent.formFactor !== 'desktop' || snapshot?.native !== null
  return !isUniform && !privacyTool && !isSoftwareRendered(facts) && telling.every((value) => value !== null)
}

function shortHash(name: string, value: string | number | null): string | null {
  if (value === null || value === '') return null
  return createHash('sha256').update(`${name}\0${value}`).digest('hex').slice(0, 12)
}

const hashBytes = 6
const unknown = Buffer.alloc(hashBytes)

/** The event that leads scoring to the visitor again. */
export function visitorLinked(
  { organization_id, environment, presented, issued, install }: Shown,
  {
    profile,
    ...link
  }: { session_id: string; visitor_id: string; linked_at: number; profile: Profile | null },
): VisitorLinked {
  const hashes = profile?.components ?? []
  return {
    ...{ organization_id, environment, ...link },
    continuity_id: issued,
    presented_continuity_ids: presented,
    install_id: install,
    components: Buffer.concat(hashes.map((hash) => (hash === null ? unknown : Buffer.from(hash, 'hex')))),
    is_distinctive: profile?.distinctive ?? false,
    network: profile?.network ?? null,
  }
}

/** The profile that the event was made of. */
export function linkedProfile({ components: bytes, is_distinctive, network }: VisitorLinked): Profile | null {
  if (bytes.length === 0) return null
  const hashes = Array.from({ length: bytes.length / hashBytes }, (_, i) =>
    bytes.subarray(i * hashBytes, (i + 1) * hashBytes),
  )
  return {
    components: hashes.map((hash) => (hash.equals(unknown) ? null : hash.toString('hex'))),
    network,
    distinctive: is_distinctive,
  }
}

/** The components as numbers from 0 to 1, -1 for an unknown one: equal values are equal numbers. */
export function vectorOf(profile: Profile | null): number[] {
  return (profile?.components ?? []).map((hash) =>
    hash === null ? -1 : Number((Number.parseInt(hash, 16) / 2 ** 48).toFixed(6)),
  )
}

export function component(profile: Profile, name: (typeof components)[number]['name']): string | null {
  return profile.components[components.findIndex((one) => one.name === name)] ?? null
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

/**
 * Where a visitor is found again, strongest first. Keys are hashes that include organization and environment, so
 * that one tenant's visitors can never be found by another.
 */
export interface VisitorKeys {
  presented: string[]
  issued: string | null
  install: string | null
  /** All strong anchors together; null when the profile is not distinctive. */
  anchors: string | null
  /** Parts that mostly outlive an update of the browser, to find candidates by. */
  partial: string[]
}

interface Scope {
  organization_id: string
  environment: Environment
}

/** What a client says of who it is. */
export interface Shown extends Scope {
  presented: string[]
  issued: string | null
  install: string | null
}

export function shownBy(state: SessionState): Shown {
  const { organization_id, environment, snapshot } = state
  return {
    ...{ organization_id, environment },
    presented: state.continuity_ids.slice(0, 8),
    issued: state.continuity_id,
    install: snapshot?.native?.install_id ?? null,
  }
}

export function visitorKeysOf(shown: Shown, profile: Profile | null): VisitorKeys {
  const { presented, issued, install } = shown
  return {
    presented: presented.map((id) => key(shown, 'continuity', id)),
    issued: issued === null ? null : key(shown, 'continuity', issued),
    install: install === null ? null : key(shown, 'install', install),
    anchors: profile?.distinctive ? anchorKey(shown, profile) : null,
    partial: profile?.distinctive ? partialKeys(shown, profile) : [],
  }
}

export function allKeys(keys: VisitorKeys): string[] {
  const single = [keys.issued, keys.install, keys.anchors].filter((one) => one !== null)
  return [...new Set([...keys.presented, ...single, ...keys.partial])]
}

function anchorKey(scope: Scope, profile: Profile): string {
  const all = profile.components.filter((_, index) => index !== browserVersion)
  return key(scope, 'anchors', all.join())
}

const browserVersion = 2

function partialKeys(scope: Scope, profile: Profile): string[] {
  const pick = (...names: Parameters<typeof component>[1][]) =>
    names.map((name) => component(profile, name) ?? '').join()
  return [
    key(scope, 'machine', pick('system', 'webgl_renderer', 'screen', 'processors', 'timezone')),
    key(scope, 'setup', pick('system', 'fonts', 'audio', 'languages', 'timezone')),
  ]
}

function key({ organization_id, environment }: Scope, kind: string, value: string): string {
  const text = [organization_id, environment, kind, value].join('\0')
  return hash('sha256', text).slice(0, 32)
}
