import { hash } from 'node:crypto'
import type { SessionState } from '../session-state.ts'
import { component, type Profile } from './profile.ts'

/**
 * Where a visitor is found again, strongest first. Keys are hashes that include organization and environment, so
 * that one tenant's visitors can never be found by another.
 */
export interface VisitorKeys {
  /** Ids that the client kept from an earlier visit, strongest first. */
  presented: string[]
  /** The id that it was given now. */
  issued: string | null
  install: string | null
  /** All strong anchors together; null when the profile is not distinctive. */
  anchors: string | null
  /** Parts that mostly outlive an update of the browser, to find candidates by. */
  partial: string[]
}

type Scope = Pick<SessionState, 'organization_id' | 'environment'>

export function keysOf(state: SessionState, profile: Profile | null): VisitorKeys {
  const install = state.snapshot?.native?.install_id ?? null
  return {
    presented: state.continuity_ids.slice(0, 8).map((id) => key(state, 'continuity', id)),
    issued: state.continuity_id === null ? null : key(state, 'continuity', state.continuity_id),
    install: install === null ? null : key(state, 'install', install),
    anchors: profile?.distinctive ? anchorKey(state, profile) : null,
    partial: profile?.distinctive ? partialKeys(state, profile) : [],
  }
}

/** Every key in which the session may meet another one. */
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

/** Hex of 16 bytes. */
function key({ organization_id, environment }: Scope, kind: string, value: string): string {
  const text = [organization_id, environment, kind, value].join('\0')
  return hash('sha256', text).slice(0, 32)
}
