import { isDeepStrictEqual } from 'node:util'
import { requireUsableOrganization } from '../../infra/access/organization.ts'
import { checkEach } from '../../infra/errors/check-all.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { type DecidedEvent, decidedEvent, eventAbout } from '../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { checkedName, invalid } from '../../infra/http/checked-fields.ts'
import { derivedId, type KeyId } from '../../infra/ids.ts'
import { earlierOf, type KeyCounts, keyEndOf } from '../../projections/organizations/queries.ts'
import type { ApiKeyRow, OrganizationRow } from '../../projections/organizations/tables.ts'
import type { ApiKeyIssued, ApiKeyRevoked, Environment } from '../../schemas/events.ts'
import {
  callerKindOf,
  checkGrant,
  type KeyCaller,
  noSuchKey,
  requireMayIssue,
  requireReachableKey,
} from './authority.ts'
import {
  checkedExpiry,
  checkedOrigins,
  checkedScopes,
  inputLimits,
  type KeySpec,
  latestExpiry,
} from './checked-input.ts'

export interface KeyState {
  organization: OrganizationRow | undefined
  key: ApiKeyRow | undefined
}

/** Throws 404 unless the key is in use and the caller can reach it, 403 if it has scopes that the caller lacks. */
export function requireChangeableKey(key: ApiKeyRow | undefined, by: KeyCaller): ApiKeyRow {
  const inUse = requireKeyInUse(requireReachableKey(key, by))
  checkGrant(inUse, by)
  return inUse
}

function requireKeyInUse(key: ApiKeyRow): ApiKeyRow {
  if (key.status === 'revoked') throw noSuchKey()
  return key
}

// The scheduler may not have revoked an expired key yet.
function requireUnexpiredKey(key: ApiKeyRow, now: number): ApiKeyRow {
  if (key.expires_at !== null && key.expires_at <= now) throw noSuchKey()
  return requireKeyInUse(key)
}

export type KeyMaterial = Pick<
  ApiKeyIssued,
  'lookup_hash' | 'secret_hash_sealed' | 'key_preview' | 'display_key'
>

export interface IssueApiKey {
  organizationId: string
  keyId: KeyId
  spec: KeySpec
  material: KeyMaterial
  by: KeyCaller
  /** Epoch milliseconds, as in all commands. */
  now: number
}

/** `existing`: the key of a repeated command. */
interface CountedState {
  organization: OrganizationRow | undefined
  counts: KeyCounts
  existing: ApiKeyRow | undefined
}

const maxActiveKeys = 100
// Every secret key is a recipient of sealed tokens, which have at most 256 recipients.
const maxSecretKeys = 256

/**
 * Throws 404 if the organization does not exist, 403 if it is not active, 409 if it has too many keys, and 422 or 403
 * for an environment or scopes that the caller cannot grant. Returns no event if `existing` has the key of a repeated
 * command.
 */
export function decideKeyIssue(
  { organization, counts, existing }: CountedState,
  command: IssueApiKey,
): DecidedEvent[] {
  // Applies to operators, too: keys of an inactive organization don't work.
  const { max_key_days: maxDays } = requireUsableOrganization(organization, 'key')
  requireMayIssue(command.spec, command.by)
  if (existing) return []
  if (counts.active >= maxActiveKeys) {
    const limit = `An organization can have ${maxActiveKeys} active keys`
    throw tooMany(limit, 'revoke an unused key')
  }
  requireBelowSecretKeyLimit(counts, command.spec)
  const { now, spec } = command
  const rule = { maxDays, now, parameterSet: 'api_key_create' } as const
  return [issuedEvent({ ...command, expires_at: checkedExpiry(spec.expires_at, rule) }, null)]
}

function requireBelowSecretKeyLimit(
  { secret }: KeyCounts,
  { type, environment }: { type: ApiKeyIssued['type']; environment: Environment },
): void {
  if (type !== 'secret' || secret[environment] < maxSecretKeys) return
  throw tooMany(
    `An organization can have ${maxSecretKeys} secret keys in use in one environment`,
    'revoke an unused key, or one that is being rotated',
  )
}

function tooMany(limit: string, remedy: string): ApiError {
  const message = `${limit}: ${remedy}, and send the request again.`
  return new ApiError('request.conflict', { message, details: { next_action: 'contact_support' } })
}

function issuedEvent(
  {
    organizationId,
    keyId,
    spec,
    material,
    now,
    expires_at,
  }: Omit<IssueApiKey, 'by'> & Pick<ApiKeyIssued, 'expires_at'>,
  replaces_key_id: string | null,
): DecidedEvent {
  const ids = { organization_id: organizationId, key_id: keyId, replaces_key_id }
  const about = {
    organizationId,
    environment: spec.environment,
    eventId: derivedId('evt', keyId, 'issued'),
    now,
  }
  return decidedEvent(
    { type: 'ApiKeyIssued', data: { ...ids, ...spec, ...material, issued_at: now, expires_at } },
    about,
  )
}

const idsOf = ({ organization_id, id: key_id }: ApiKeyRow) => ({ organization_id, key_id })

interface RotateApiKey {
  replacementId: KeyId
  material: KeyMaterial
  by: KeyCaller
  now: number
}

export const rotationGraceMs = 24 * 60 * 60 * 1000

/**
 * Issues a replacement that differs only in its material and, with the same lifetime, in its expiry. Throws 404 if the
 * key does not exist or is revoked, 409 if it is already rotating or there are too many secret keys, 403 if the
 * organization is not active or the caller lacks scopes. A repeated command returns only the events that the first
 * attempt did not write.
 */
export function decideKeyRotation(
  state: KeyState & CountedState,
  command: RotateApiKey,
): DecidedEvent[] {
  const { max_key_days: maxDays } = requireUsableOrganization(state.organization, 'key')
  const key = requireReachableKey(state.key, command.by)
  if (!state.existing) requireUnexpiredKey(key, command.now)
  checkGrant(key, command.by)
  if (state.existing) return key.status === 'active' ? [rotatedEvent(key, command)] : []
  if (key.status === 'rotating') {
    throw new ApiError('request.conflict', { message: 'The API key is already being rotated.' })
  }
  requireBelowSecretKeyLimit(state.counts, key)
  const replacement = replacementOf(key, { ...command, maxDays })
  return [issuedEvent(replacement, key.id), rotatedEvent(key, command)]
}

function replacementOf(
  key: ApiKeyRow,
  { replacementId, material, now, maxDays }: RotateApiKey & { maxDays: number | null },
) {
  const { type, environment, name, client_target, allowed_origins, scopes } = key
  const spec = { type, environment, name, client_target, allowed_origins, scopes }
  const sameLifetime = key.expires_at === null ? null : now + key.expires_at - key.created_at
  const expires_at = earlierOf(sameLifetime, latestExpiry(maxDays, now))
  return {
    organizationId: key.organization_id,
    keyId: replacementId,
    spec,
    material,
    now,
    expires_at,
  }
}

function rotatedEvent(key: ApiKeyRow, { replacementId, now }: RotateApiKey): DecidedEvent {
  const times = { rotated_at: now, grace_expires_at: now + rotationGraceMs }
  const data = { ...idsOf(key), replacement_key_id: replacementId, ...times }
  return eventAbout(
    key,
    { type: 'ApiKeyRotated', data },
    { eventId: derivedId('evt', key.id, 'rotated'), now },
  )
}

/** Revokes the key regardless of its scopes, so that any key at hand can revoke a leaked one. */
export function decideKeyRevocation(
  { organization, key: row }: KeyState,
  { by, now }: { by: KeyCaller; now: number },
): DecidedEvent[] {
  requireUsableOrganization(organization, callerKindOf(by))
  const key = requireReachableKey(row, by)
  return key.status === 'revoked'
    ? []
    : [revokedEvent(key, { reason: 'requested', revoked_at: now, now })]
}

/** Revokes a key that expired or whose grace period is over, with that time as the time of revocation. */
export function decideKeyEnd(key: ApiKeyRow | undefined, now: number): DecidedEvent[] {
  if (!key || key.status === 'revoked') return []
  const end = keyEndOf(key)
  if (end === null || end > now) return []
  const reason = end === key.grace_expires_at ? 'grace_ended' : 'expired'
  return [revokedEvent(key, { reason, revoked_at: end, now })]
}

function revokedEvent(
  key: ApiKeyRow,
  { now, ...revocation }: Pick<ApiKeyRevoked, 'reason' | 'revoked_at'> & { now: number },
): DecidedEvent {
  const data = { ...idsOf(key), ...revocation }
  return eventAbout(
    key,
    { type: 'ApiKeyRevoked', data },
    { eventId: derivedId('evt', key.id, 'revoked'), now },
  )
}

export interface KeyChanges {
  name?: string | undefined
  allowed_origins?: string[] | undefined
  scopes?: string[] | undefined
  /** Epoch milliseconds; null: never. */
  expires_at?: number | null | undefined
}

interface UpdateApiKey extends KeyChanges {
  by: KeyCaller
  changeId: string
  now: number
}

const updateParameterSet = 'api_key_update'

/**
 * Returns one event for each of name, origins, scopes and expiry that changes. Throws 404 if the key does not exist or is
 * revoked, 403 if the organization is not active or the caller lacks a scope, 422 naming the invalid fields.
 */
export function decideKeyUpdate(
  { organization, key }: KeyState,
  command: UpdateApiKey,
): DecidedEvent[] {
  const { by, changeId, now } = command
  const { max_key_days: maxDays } = requireUsableOrganization(organization, callerKindOf(by))
  const current = requireUnexpiredKey(requireChangeableKey(key, by), now)
  const changes = checkEach([renameKey, changeOrigins, changeScopes, changeExpiry], (change) =>
    change(current, { ...command, maxDays }),
  )
  return changes
    .flat()
    .map((event) =>
      eventAbout(current, event, { eventId: derivedId('evt', changeId, event.type), now }),
    )
}

function renameKey(key: ApiKeyRow, { name: text, now }: UpdateApiKey): DomainEvent[] {
  if (text === undefined) return []
  const name = checkedName(text, { max: inputLimits.keyName, parameterSet: updateParameterSet })
  return name === key.name
    ? []
    : [{ type: 'ApiKeyRenamed', data: { ...idsOf(key), name, renamed_at: now } }]
}

function changeOrigins(
  key: ApiKeyRow,
  { allowed_origins: origins, now }: UpdateApiKey,
): DomainEvent[] {
  if (!origins) return []
  if (key.type === 'secret' || key.client_target !== 'browser') {
    const expected = 'publishable browser keys only'
    throw invalid({ name: 'allowed_origins', issue: 'not_allowed', expected }, updateParameterSet)
  }
  const { environment } = key
  const allowed_origins = checkedOrigins(origins, { environment, parameterSet: updateParameterSet })
  if (isDeepStrictEqual(allowed_origins, key.allowed_origins)) return []
  return [
    { type: 'ApiKeyOriginsChanged', data: { ...idsOf(key), allowed_origins, changed_at: now } },
  ]
}

function changeScopes(key: ApiKeyRow, command: UpdateApiKey): DomainEvent[] {
  if (!command.scopes) return []
  if (key.type === 'publishable') {
    throw invalid(
      { name: 'scopes', issue: 'not_allowed', expected: 'secret keys only' },
      updateParameterSet,
    )
  }
  const scopes = checkedScopes(command.scopes, updateParameterSet)
  checkGrant({ type: key.type, scopes }, command.by)
  if (isDeepStrictEqual(scopes, key.scopes)) return []
  return [{ type: 'ApiKeyScopesChanged', data: { ...idsOf(key), scopes, changed_at: command.now } }]
}

function changeExpiry(
  key: ApiKeyRow,
  { expires_at: expiresAt, now, maxDays }: UpdateApiKey & { maxDays: number | null },
): DomainEvent[] {
  if (expiresAt === undefined || expiresAt === key.expires_at) return []
  const expires_at = checkedExpiry(expiresAt, { maxDays, now, parameterSet: updateParameterSet })
  return [{ type: 'ApiKeyExpiryChanged', data: { ...idsOf(key), expires_at, changed_at: now } }]
}
