import { hash } from 'node:crypto'
import type { Environment, VisitorLinked } from '../../../schemas/events.ts'
import type { SessionState } from '../session/state.ts'
import { type ComponentName, component, type Profile, uniquenessOf } from './profile.ts'

/**
 * Where a visitor is found again, strongest first. Keys are hashes that include organization and environment, so
 * that one tenant's visitors can never be found by another.
 */
export interface VisitorKeys {
  /** Keys of the continuity ids that the client sent. */
  presented: string[]
  /** The key of the continuity id that it got at the opening. */
  issued: string | null
  install: string | null
  /** By these candidates are found that may have lost their storage. */
  matchKeys: { kind: MatchKind; key: string }[]
}

/**
 * Components of which a match key is made. A machine's key outlives what a person changes, a drawing's other fonts, that
 * of fonts another drawing, and that of a place another graphics card or driver. Nobody is found by the key of a
 * network, which says how many share it.
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

/** Traits that no device changes. They are part of each match key but that of the network. */
export const constants = ['system', 'browser', 'platform'] as const satisfies ComponentName[]

interface Scope {
  organization_id: string
  environment: Environment
}

/** Ids by which a client says who it is. */
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
  const single = [keys.issued, keys.install].filter((one) => one !== null)
  return [...new Set([...keys.presented, ...single, ...keys.matchKeys.map(({ key }) => key)])]
}

/** Keys that one client has, and no other. */
export const presentedKeys = ({ presented, install }: VisitorKeys): string[] =>
  install === null ? presented : [...presented, install]

/** All sessions of one storage have the same. null = the client stores nothing that was issued to it. */
export const storageKeyOf = ({ presented, issued, install }: VisitorKeys): string | null =>
  install ?? presented[0] ?? issued

const here: MatchKind[] = ['place', 'network']
const everywhere: MatchKind[] = ['machine', 'drawing', 'fonts']

function matchKeysOf(scope: Scope, profile: Profile): VisitorKeys['matchKeys'] {
  if (uniquenessOf(profile) === 'none') return []
  const kinds = [...everywhere, ...(profile.network === null ? [] : here)]
  return kinds.map((kind) => ({ kind, key: key(scope, kind, matchValueOf(profile, kind)) }))
}

function matchValueOf(profile: Profile, kind: MatchKind): string {
  const place = here.includes(kind) ? profile.network : ''
  if (kind === 'network') return String(place)
  return [
    ...[...constants, ...matchKinds[kind]].map((name) => component(profile, name)),
    place,
  ].join()
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
    organization_id,
    environment,
    ...link,
    continuity_id: issued,
    presented_continuity_ids: presented,
    install_id: install,
    components: Buffer.concat(
      hashes.map((hash) => (hash === null ? unknown : Buffer.from(hash, 'hex'))),
    ),
    is_distinctive: profile?.distinctive ?? false,
    network: profile?.network ?? null,
  }
}

/** The profile that the event was made of. */
export function linkedProfile({
  components: bytes,
  is_distinctive,
  network,
}: VisitorLinked): Profile | null {
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
