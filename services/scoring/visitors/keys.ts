import { hash } from 'node:crypto'
import type { Environment, VisitorLinked } from '../../../schemas/events.ts'
import type { SessionState } from '../session/state.ts'
import { type ComponentName, component, type Profile, uniquenessOf } from './profile.ts'

/**
 * Keys that find a visitor, strongest first. The hashes include organization and environment, so no tenant finds
 * another tenant's visitors.
 */
export interface VisitorKeys {
  /** Keys of the continuity ids that the client sent. */
  presented: string[]
  /** Key of the continuity id that the client got when the session opened. */
  issued: string | null
  /** Key of the app's install id. */
  install: string | null
  /** Keys of the profile. They find visitors that may have lost their storage. */
  matchKeys: { kind: MatchKind; key: string }[]
}

/**
 * Components of each match key. `machine` survives changed settings, `drawing` changed fonts, `fonts` a changed canvas
 * drawing, and `place` a new graphics card or driver. `network` matches nobody: it only counts the visitors
 * in a network.
 */
export const matchKinds = {
  machine: [
    'webgl_renderer',
    'webgl_parameters',
    'canvas',
    'audio',
    'fonts',
    'processors',
    'memory',
  ],
  drawing: ['webgl_renderer', 'canvas', 'processors'],
  fonts: ['webgl_renderer', 'audio', 'fonts', 'processors'],
  place: ['processors', 'memory'],
  network: [],
} as const satisfies Record<string, ComponentName[]>

export type MatchKind = keyof typeof matchKinds

/** Components that never change on a device. They are part of every match key except `network`. */
export const immutableTraits = ['system', 'browser', 'platform'] as const satisfies ComponentName[]

interface Scope {
  organization_id: string
  environment: Environment
}

/** Ids that identify a client. */
export interface ClientIds extends Scope {
  presented: string[]
  issued: string | null
  install: string | null
}

export function clientIdsOf(state: SessionState): ClientIds {
  const { organization_id, environment, snapshot } = state
  return {
    organization_id,
    environment,
    presented: state.continuity_ids.slice(0, 8),
    issued: state.continuity_id,
    install: snapshot?.native?.install_id ?? null,
  }
}

export function visitorKeysOf(ids: ClientIds, profile: Profile | null): VisitorKeys {
  const { presented, issued, install } = ids
  return {
    presented: presented.map((id) => key(ids, 'continuity', id)),
    issued: issued === null ? null : key(ids, 'continuity', issued),
    install: install === null ? null : key(ids, 'install', install),
    matchKeys: profile ? matchKeysOf(ids, profile) : [],
  }
}

export function allKeys(keys: VisitorKeys): string[] {
  const { presented, issued, install, matchKeys } = keys
  const ids = [...presented, issued, install].filter((id) => id !== null)
  return [...new Set([...ids, ...matchKeys.map(({ key }) => key)])]
}

/** Returns the keys of stored ids, which only a single client has. */
export const presentedKeys = ({ presented, install }: VisitorKeys): string[] =>
  install === null ? presented : [...presented, install]

/** Returns the key that all sessions of one client storage share; null if the client has no id. */
export const storageKeyOf = ({ presented, issued, install }: VisitorKeys): string | null =>
  install ?? presented[0] ?? issued

const networkKinds: MatchKind[] = ['place', 'network']
const portableKinds: MatchKind[] = ['machine', 'drawing', 'fonts']

function matchKeysOf(scope: Scope, profile: Profile): VisitorKeys['matchKeys'] {
  if (uniquenessOf(profile) === 'none') return []
  const kinds = [...portableKinds, ...(profile.network === null ? [] : networkKinds)]
  return kinds.map((kind) => ({ kind, key: key(scope, kind, matchValueOf(profile, kind)) }))
}

function matchValueOf(profile: Profile, kind: MatchKind): string {
  const network = networkKinds.includes(kind) ? profile.network : ''
  if (kind === 'network') return String(network)
  return [
    ...[...immutableTraits, ...matchKinds[kind]].map((name) => component(profile, name)),
    network,
  ].join()
}

function key({ organization_id, environment }: Scope, kind: string, value: string): string {
  const text = [organization_id, environment, kind, value].join('\0')
  return hash('sha256', text).slice(0, 32)
}

const hashBytes = 6
const unknownHash = Buffer.alloc(hashBytes)

/** Returns the event that visitors are rebuilt from. Its profile is a concatenation of component hashes. */
export function linkedEvent(
  { organization_id, environment, presented, issued, install }: ClientIds,
  {
    profile,
    ...link
  }: { session_id: string; visitor_id: string; linked_at: number; profile: Profile | null },
): VisitorLinked {
  const hashes = profile?.components ?? []
  return {
    organization_id,
    environment,
    ...link,
    continuity_id: issued,
    presented_continuity_ids: presented,
    install_id: install,
    components: Buffer.concat(
      hashes.map((hash) => (hash === null ? unknownHash : Buffer.from(hash, 'hex'))),
    ),
    is_distinctive: profile?.distinctive ?? false,
    network: profile?.network ?? null,
  }
}

/** Returns the profile stored in the event. */
export function profileFromEvent({
  components: bytes,
  is_distinctive,
  network,
}: VisitorLinked): Profile | null {
  if (bytes.length === 0) return null
  const hashes = Array.from({ length: bytes.length / hashBytes }, (_, i) =>
    bytes.subarray(i * hashBytes, (i + 1) * hashBytes),
  )
  return {
    components: hashes.map((hash) => (hash.equals(unknownHash) ? null : hash.toString('hex'))),
    network,
    distinctive: is_distinctive,
  }
}
