import { ApiError } from '../../infra/errors/errors.ts'
import type { Decision } from '../../infra/event-store/decide.ts'
import { decided } from '../../infra/event-store/decided.ts'
import { derivedId, type KeyId } from '../../infra/ids.ts'
import { type KeyCounts, organizationFor } from '../../projections/organizations/queries.ts'
import type { ApiKeyRow } from '../../projections/organizations/tables.ts'
import type { ApiKeyRotated } from '../../schemas/events.ts'
import { issued, type KeyMaterial, refuseManySecretKeys } from './issue-api-key.ts'
import { type KeyState, keyInUse, noSuchKey } from './key-state.ts'

export interface RotateApiKey {
  replacementId: KeyId
  material: KeyMaterial
  /** Epoch milliseconds. */
  now: number
}

export interface RotateState extends KeyState {
  counts: KeyCounts
  /** The key with the replacement's id. */
  existing: ApiKeyRow | undefined
}

/** How long the old key of a rotation still works. */
export const graceMs = 24 * 60 * 60 * 1000

/**
 * A replacement like the key in everything but its material, and the key in grace for 24 hours. 404 when there is no
 * such key or it is revoked, 409 when it is rotating or there are as many secret keys as there can be, 403 when the
 * organization is not active. A repeated command adds only what is missing of the first.
 */
export function rotateApiKey(state: RotateState, command: RotateApiKey): Decision[] {
  organizationFor(state.organization, 'key')
  const { existing } = state
  if (!state.key) throw noSuchKey()
  if (existing) return state.key.status === 'active' ? [rotated(state.key, command)] : []
  const key = keyInUse(state.key)
  if (key.status === 'rotating') {
    throw new ApiError('request.conflict', { message: 'The API key is being rotated already.' })
  }
  refuseManySecretKeys(state.counts, key)
  return [issued(replacementOf(key, command), key.id), rotated(key, command)]
}

function replacementOf(key: ApiKeyRow, { replacementId, material, now }: RotateApiKey) {
  const { type, environment, name, client_target, allowed_origins, scopes } = key
  const spec = { type, environment, name, client_target, allowed_origins, scopes }
  return { organizationId: key.organization_id, keyId: replacementId, spec, material, now }
}

function rotated(key: ApiKeyRow, { replacementId, now }: RotateApiKey): Decision {
  const { id: key_id, organization_id, environment } = key
  const data: ApiKeyRotated = {
    organization_id,
    key_id,
    replacement_key_id: replacementId,
    rotated_at: now,
    grace_expires_at: now + graceMs,
  }
  const eventId = derivedId('evt', key_id, 'rotated')
  return decided(
    { type: 'ApiKeyRotated', data },
    { organizationId: organization_id, environment, eventId, now },
  )
}
