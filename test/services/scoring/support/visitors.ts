import type { KnownVisitor } from '../../../../services/scoring/visitors/match.ts'
import { type Profile, profileOf } from '../../../../services/scoring/visitors/profile.ts'
import { evaluateClient } from './sessions.ts'
import { type Client, desktopChrome, withParts } from './snapshots.ts'

export const hour = 60 * 60 * 1000
export const now = 1_000 * hour

export function profileFor(client: Client): Profile {
  const profile = profileOf(evaluateClient(client).facts)
  if (!profile) throw new Error('no snapshot')
  return profile
}

export const mac = profileFor(desktopChrome)
export const elsewhere = { ...mac, network: '198.51.100' }
export const changedMac = (parts: Client['snapshot']) => profileFor(withParts(desktopChrome, parts))

/** Returns a visitor with the Mac that was last seen three days ago, with changes. */
export const knownVisitor = (id: string, overrides: Partial<KnownVisitor> = {}): KnownVisitor => ({
  id,
  first_seen_at: now - 90 * hour,
  last_seen_at: now - 80 * hour,
  sessions: 3,
  profile: mac,
  storage_key: null,
  apart_from: null,
  ...overrides,
})
