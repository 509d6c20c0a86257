import { generateApiKey, type KeyKind, sealSecretHash } from '../../infra/crypto/api-keys.ts'
import { type CommandDeps, type DecidedEvent, newId } from '../../infra/event-store/decide.ts'
import type { KeyId, OrganizationId } from '../../infra/ids.ts'
import type { Db, Tx } from '../../infra/postgres/pool.ts'
import {
  countKeys,
  findKey,
  findOrganization,
  findOrganizationBySlug,
} from '../../projections/organizations/queries.ts'
import type { OrganizationRow } from '../../projections/organizations/tables.ts'
import { eventTopics } from '../../schemas/events.ts'
import { type KeyCaller, noSuchKey } from './authority.ts'
import {
  completeKeyRequest,
  completeOrganizationRequest,
  type KeyRequest,
} from './checked-input.ts'
import {
  decideKeyEnd,
  decideKeyIssue,
  decideKeyRevocation,
  decideKeyRotation,
  decideKeyUpdate,
  type KeyChanges,
  type KeyMaterial,
  type KeyState,
} from './decide-key.ts'
import { type ChangeIdentity, decideOrganizationCreation } from './decide-organization.ts'

/** Returns the event stream of an organization. Its lock serializes the organization's commands. */
export function organizationStream(organizationId: string) {
  return {
    topic: eventTopics.OrganizationCreated,
    projection: 'organizations',
    key: organizationId,
    locks: [`organization:${organizationId}`],
  }
}

type OrganizationDeps = Omit<CommandDeps, 'keyring'>

/** Throws 409 if the slug is taken, 422 if the name or slug is invalid. */
export async function createOrganization(
  { decide, clock, ...deps }: OrganizationDeps,
  request: { name: string; slug: string },
): Promise<{ organizationId: OrganizationId }> {
  const { name, slug } = completeOrganizationRequest(request)
  const now = clock()
  const organizationId = newId('org', { ...deps, now })
  await decide({
    ...organizationStream(organizationId),
    locks: [`organization-slug:${slug}`],
    // Another organization with the slug may be in any partition.
    reads: 'topic',
    load: async (tx) => ({ takenBy: (await findOrganizationBySlug(tx, slug))?.id }),
    decide: (state) => decideOrganizationCreation(state, { organizationId, name, slug, now }),
  })
  return { organizationId }
}

/** Throws the errors of `decideChange`. */
export async function changeOrganization(
  { decide, clock, ...deps }: OrganizationDeps,
  organizationId: string,
  decideChange: (
    organization: OrganizationRow | undefined,
    change: ChangeIdentity,
  ) => DecidedEvent[],
): Promise<void> {
  const now = clock()
  const changeId = newId('evt', { ...deps, now })
  await decide({
    ...organizationStream(organizationId),
    load: (tx) => findOrganization(tx, organizationId),
    decide: (organization) => decideChange(organization, { changeId, now }),
  })
}

export interface IssuedKey {
  keyId: KeyId
  /** Full key. A secret key is never shown again. */
  revealedKey: string
}

export interface KeyPath {
  organizationId: string
  keyId: string
}

/**
 * Throws 404 if the organization does not exist, 403 if it is not active or the caller lacks a scope, 409 if it has too
 * many keys, 422 for invalid fields.
 */
export async function issueApiKey(
  deps: CommandDeps,
  { organizationId, by, ...request }: KeyRequest & { organizationId: string; by: KeyCaller },
): Promise<IssuedKey> {
  const spec = completeKeyRequest(request)
  const now = deps.clock()
  const { keyId, revealedKey, material } = generateKey(deps, { ...spec, now })
  await deps.decide({
    ...organizationStream(organizationId),
    load: async (tx) => ({
      organization: await findOrganization(tx, organizationId),
      counts: await countKeys(tx, organizationId),
      existing: await findKey(tx, organizationId, keyId),
    }),
    decide: (state) => decideKeyIssue(state, { organizationId, keyId, spec, material, by, now }),
  })
  return { keyId, revealedKey }
}

export function generateKey(
  { keyring, random, ...deps }: Pick<CommandDeps, 'keyring' | 'random' | 'idTime'>,
  { type, environment, now }: KeyKind & { now: number },
): IssuedKey & { material: KeyMaterial } {
  const keyId = newId('key', { ...deps, random, now })
  const { key, ...generated } = generateApiKey({ type, environment, keyring, random })
  const material = {
    lookup_hash: generated.lookupHash,
    secret_hash_sealed: type === 'secret' ? sealSecretHash({ keyring, key, keyId, random }) : null,
    key_preview: generated.preview,
    display_key: generated.displayKey,
  }
  return { keyId, revealedKey: key, material }
}

/**
 * Throws 404 if the key does not exist or is revoked, 403 if the caller lacks a scope or is a key of an inactive
 * organization, 422 for invalid fields.
 */
export async function updateApiKey(
  { decide, clock, ...deps }: Omit<CommandDeps, 'keyring'>,
  { organizationId, keyId, ...changes }: KeyPath & KeyChanges & { by: KeyCaller },
): Promise<void> {
  const now = clock()
  const changeId = newId('evt', { ...deps, now })
  await decide({
    ...organizationStream(organizationId),
    load: (tx) => loadKey(tx, { organizationId, keyId }),
    decide: (state) => decideKeyUpdate(state, { ...changes, changeId, now }),
  })
}

/**
 * Does nothing if the key is already revoked. Throws 404 if it does not exist, 403 if the caller is a key of an
 * inactive organization.
 */
export async function revokeApiKey(
  { decide, clock }: Pick<CommandDeps, 'decide' | 'clock'>,
  { organizationId, keyId, by }: KeyPath & { by: KeyCaller },
): Promise<void> {
  const now = clock()
  await decide({
    ...organizationStream(organizationId),
    load: (tx) => loadKey(tx, { organizationId, keyId }),
    decide: (state) => decideKeyRevocation(state, { by, now }),
  })
}

async function loadKey(tx: Tx, { organizationId, keyId }: KeyPath): Promise<KeyState> {
  return {
    organization: await findOrganization(tx, organizationId),
    key: await findKey(tx, organizationId, keyId),
  }
}

/** Issues a replacement; the old key works for another 24 hours. Throws the errors of `decideKeyRotation`. */
export async function rotateApiKey(
  { pool, ...deps }: CommandDeps & { pool: Db },
  { organizationId, keyId, by }: KeyPath & { by: KeyCaller },
): Promise<IssuedKey> {
  const now = deps.clock()
  // Type and environment never change, so they may be read before the lock is held.
  const key = await findKey(pool, organizationId, keyId)
  if (!key) throw noSuchKey()
  const { type, environment } = key
  const {
    keyId: replacementId,
    revealedKey,
    material,
  } = generateKey(deps, { type, environment, now })
  await deps.decide({
    ...organizationStream(organizationId),
    load: async (tx) => ({
      ...(await loadKey(tx, { organizationId, keyId })),
      counts: await countKeys(tx, organizationId),
      existing: await findKey(tx, organizationId, replacementId),
    }),
    decide: (state) => decideKeyRotation(state, { replacementId, material, by, now }),
  })
  return { keyId: replacementId, revealedKey }
}

/** Revokes the key if it expired or its grace period is over; otherwise returns false. */
export async function revokeEndedKey(
  { decide, clock }: Pick<CommandDeps, 'decide' | 'clock'>,
  { organizationId, keyId }: KeyPath,
): Promise<boolean> {
  const now = clock()
  const events = await decide({
    ...organizationStream(organizationId),
    load: (tx) => findKey(tx, organizationId, keyId),
    decide: (key) => decideKeyEnd(key, now),
  })
  return events.length > 0
}
