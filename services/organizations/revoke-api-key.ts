import type { Decision } from '../../infra/event-store/decide.ts'
import { decided } from '../../infra/event-store/decided.ts'
import { derivedId } from '../../infra/ids.ts'
import { type Actor, organizationFor } from '../../projections/organizations/queries.ts'
import type { ApiKeyRow } from '../../projections/organizations/tables.ts'
import type { ApiKeyRevoked } from '../../schemas/events.ts'
import { type KeyState, noSuchKey } from './key-state.ts'

export interface RevokeApiKey {
  by: Actor
  /** Epoch milliseconds. */
  now: number
}

/** Revokes an active or rotating key; no event when it is revoked. 404 without it, 403 when its organization is not active. */
export function revokeApiKey({ organization, key }: KeyState, { by, now }: RevokeApiKey): Decision[] {
  organizationFor(organization, by)
  if (!key) throw noSuchKey()
  return key.status === 'revoked' ? [] : [revoked(key, { reason: 'requested', revokedAt: now, now })]
}

/** Revokes a rotating key whose grace has ended, as of that moment; no event for any other key. */
export function endGrace(key: ApiKeyRow | undefined, { now }: { now: number }): Decision[] {
  if (key?.status !== 'rotating' || key.grace_expires_at === null) return []
  if (key.grace_expires_at > now) return []
  return [revoked(key, { reason: 'grace_ended', revokedAt: key.grace_expires_at, now })]
}

interface Revocation {
  reason: ApiKeyRevoked['reason']
  revokedAt: number
  now: number
}

function revoked(key: ApiKeyRow, { reason, revokedAt, now }: Revocation): Decision {
  const { id: key_id, organization_id, environment } = key
  const data: ApiKeyRevoked = { organization_id, key_id, revoked_at: revokedAt, reason }
  const eventId = derivedId('evt', key_id, 'revoked')
  return decided(
    { type: 'ApiKeyRevoked', data },
    { organizationId: organization_id, environment, eventId, now },
  )
}
