import { generateApiKey, type KeyKind, sealSecretHash } from '../../infra/crypto/api-keys.ts'
import { type CommandDeps, newId } from '../../infra/event-store/command-deps.ts'
import type { KeyId } from '../../infra/ids.ts'
import type { Db, Tx } from '../../infra/postgres/pool.ts'
import { type Actor, countKeys, findKey, findOrganization } from '../../projections/organizations/queries.ts'
import { issueApiKey as decideIssue, type KeyMaterial } from './issue-api-key.ts'
import { completeKeyRequest, type KeyRequest } from './key-request.ts'
import { type KeyState, noSuchKey } from './key-state.ts'
import { endGrace as decideEnd, revokeApiKey as decideRevocation } from './revoke-api-key.ts'
import { rotateApiKey as decideRotation } from './rotate-api-key.ts'
import { streamOf } from './stream.ts'
import { updateApiKey as decideUpdate, type KeyChanges } from './update-api-key.ts'

export interface IssuedKey {
  keyId: KeyId
  /** The whole key; of a secret key this is the only time that anyone sees it. */
  revealedKey: string
}

/** Names one key of one organization. */
export interface KeyPath {
  organizationId: string
  keyId: string
}

/** Issues a key. ApiError: 404 no such organization, 403 not active, 409 too many keys, 422 what does not fit. */
export async function issueApiKey(
  deps: CommandDeps,
  { organizationId, ...request }: KeyRequest & { organizationId: string },
): Promise<IssuedKey> {
  const spec = completeKeyRequest(request)
  const now = deps.clock()
  const { keyId, revealedKey, material } = generate(deps, { ...spec, now })
  await deps.decide({
    ...streamOf(organizationId),
    load: async (tx) => ({
      organization: await findOrganization(tx, organizationId),
      counts: await countKeys(tx, organizationId),
      existing: await findKey(tx, organizationId, keyId),
    }),
    decide: (state) => decideIssue(state, { organizationId, keyId, spec, material, now }),
  })
  return { keyId, revealedKey }
}

function generate(
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

/** ApiError: 404 no such key or revoked, 403 organization not active (`by` its key), 422 what does not fit. */
export async function updateApiKey(
  { decide, clock, ...deps }: Omit<CommandDeps, 'keyring'>,
  { organizationId, keyId, ...changes }: KeyPath & KeyChanges & { by: Actor },
): Promise<void> {
  const now = clock()
  const changeId = newId('evt', { ...deps, now })
  await decide({
    ...streamOf(organizationId),
    load: (tx) => loadKey(tx, { organizationId, keyId }),
    decide: (state) => decideUpdate(state, { ...changes, changeId, now }),
  })
}

/** Revokes a key for good; again, it does nothing. ApiError: 404 no such key, 403 organization not active (`by` its key). */
export async function revokeApiKey(
  { decide, clock }: Pick<CommandDeps, 'decide' | 'clock'>,
  { organizationId, keyId, by }: KeyPath & { by: Actor },
): Promise<void> {
  const now = clock()
  await decide({
    ...streamOf(organizationId),
    load: (tx) => loadKey(tx, { organizationId, keyId }),
    decide: (state) => decideRevocation(state, { by, now }),
  })
}

async function loadKey(tx: Tx, { organizationId, keyId }: KeyPath): Promise<KeyState> {
  return {
    organization: await findOrganization(tx, organizationId),
    key: await findKey(tx, organizationId, keyId),
  }
}

/**
 * Issues the replacement and lets the key work for 24 more hours. ApiError: 404 no such key or revoked, 409 rotating
 * already or too many secret keys, 403 organization not active.
 */
export async function rotateApiKey(
  { pool, ...deps }: CommandDeps & { pool: Db },
  { organizationId, keyId }: KeyPath,
): Promise<IssuedKey> {
  const now = deps.clock()
  // Type and environment never change, so they may be read before the lock is held.
  const kind = await findKey(pool, organizationId, keyId)
  if (!kind) throw noSuchKey()
  const { type, environment } = kind
  const { keyId: replacementId, revealedKey, material } = generate(deps, { type, environment, now })
  await deps.decide({
    ...streamOf(organizationId),
    load: async (tx) => ({
      ...(await loadKey(tx, { organizationId, keyId })),
      counts: await countKeys(tx, organizationId),
      existing: await findKey(tx, organizationId, replacementId),
    }),
    decide: (state) => decideRotation(state, { replacementId, material, now }),
  })
  return { keyId: replacementId, revealedKey }
}

/** Revokes a rotating key whose grace has ended; whether it was one. */
export async function endGrace(
  { decide, clock }: Pick<CommandDeps, 'decide' | 'clock'>,
  { organizationId, keyId }: KeyPath,
): Promise<boolean> {
  const now = clock()
  const events = await decide({
    ...streamOf(organizationId),
    load: (tx) => findKey(tx, organizationId, keyId),
    decide: (key) => decideEnd(key, { now }),
  })
  return events.length > 0
}
