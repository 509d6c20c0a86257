import { hash } from 'node:crypto'
import type { Environment, VisitorLinked } from '../../../schemas/events.ts'
import type { SessionState } from '../session/state.ts'
import { type ComponentName, component, type Profile, uniquenessOf } from './profile.ts'

/**
 * Where a visitor is found again, strongest first. Keys are hashes that include organization and environment, so
 * that one tenant's visitors can never be found by another.
 */
export interface VisitorKeys {
  presented: string[]
  issued: string | null
  install: string | null
  /** What candidates are found by who may have lost what they kept. */
  looks: MatchKey[]
}

/** Components that belong together. What of them is unknown makes no key. */
export interface MatchKey {
  kind: MatchKind
  key: string
}

/**
 * The first outlives what a person changes, the second other fonts, the third another drawing, the fourth another
 * graphics card or driver. Nobody is found by the last: it says how many share the network.
 */
export const matchKinds = {
  machine: ['webgl_renderer', 'webgl_parameters', 'canvas', 'audio', 'fonts', 'processors', 'memory'],
  drawing: ['webgl_renderer', 'canvas', 'processors'],
  fonts: ['webgl_renderer', 'audio', 'fonts', 'processors'],
  place: ['processors', 'memory'],
  network: [],
} as const satisfies Record<string, ComponentName[]>

export type MatchKind = keyof typeof matchKinds

/** What no device changes: part of each look but the network. */
export const constants = ['system', 'browser', 'platform'] as const satisfies ComponentName[]

interface Scope {
  organization_id: string
  environment: Environment
}

/** What a client says of who it is. */
export interface ClientIds extends Scope {
  presented: string[]
  issued: string | null
  install: string | null
}

export function clientIdsOf(state: SessionState): ClientIds {
  const { organization_id, environment, snapshot } = state
  return {
    ...{ organization_id, environment },
    presented: state.continuity_ids.slice(0, 8),
    issued: state.continuity_id,
    install: snapshot?.native?.install_id ?? null,
  }
}

export function visitorKeysOf(shown: ClientIds, profile: Profile | null): VisitorKeys {
  const { presented, issued, install } = shown
  return {
    presented: presented.map((id) => key(shown, 'continuity', id)),
    issued: issued === null ? null : key(shown, 'continuity', issued),
    install: install === null ? null : key(shown, 'install', install),
    looks: profile ? matchKeysOf(shown, profile) : [],
  }
}

export function allKeys(keys: VisitorKeys): string[] {
  const single = [keys.issued, keys.install].filter((one) => one !== null)
  return [...new Set([...keys.presented, ...single, ...keys.looks.map((look) => look.key)])]
}

/** What a client has that no other has. */
export const presentedKeys = ({ presented, install }: VisitorKeys): string[] =>
  install === null ? presented : [...presented, install]

/** What all sessions of a client with this storage have in common. null = nothing was given to it. */
export const storageKeyOf = ({ presented, issued, install }: VisitorKeys): string | null =>
  install ?? presented[0] ?? issued

const here: MatchKind[] = ['place', 'network']
const everywhere: MatchKind[] = ['machine', 'drawing', 'fonts']

function matchKeysOf(scope: Scope, profile: Profile): MatchKey[] {
  if (uniquenessOf(profile) === 'none') return []
  const kinds = [...everywhere, ...(profile.network === null ? [] : here)]
  return kinds.map((kind) => ({ kind, key: key(scope, kind, matchValueOf(profile, kind)) }))
}

function matchValueOf(profile: Profile, kind: MatchKind): string {
  const place = here.includes(kind) ? profile.network : ''
  if (kind === 'network') return String(place)
  return [...[...constants, ...matchKinds[kind]].map((name) => component(profile, name)), place].join()
}

function key({ organization_id, environment }: Scope, kind: string, value: string): string {
  const text = [organization_id, environment, kind, value].join('\0')
  return hash('sha256', text).slice(0, 32)
}

const hashBytes = 6
const unknown = Buffer.alloc(hashBytes)

/** The event that leads scoring to the visitor again. */
export function visitorLinked(
  { organization_id, environment, presented, issued, install }: ClientIds,
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
