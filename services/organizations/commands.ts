import { generateApiKey, sealSecretHash } from '../../infra/crypto/api-keys.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { Decide } from '../../infra/decide.ts'
import { type Clock, type KeyId, type OrganizationId, type Random, timeOrderedId } from '../../infra/ids.ts'
import {
  countKeys,
  findOrganization,
  findOrganizationBySlug,
} from '../../projections/organizations/queries.ts'
import { eventTopics } from '../../schemas/events.ts'
import { createOrganization as decideCreation } from './create-organization.ts'
import { completeKeyRequest, issueApiKey as decideIssue, type KeyRequest } from './issue-api-key.ts'

export interface CommandDeps {
  decide: Decide
  keyring: Keyring
  clock: Clock
  random: Random
}

const stream = { topic: eventTopics.OrganizationCreated, projection: 'organizations' } as const

/** Creates an active organization. ApiError: 409 slug taken, 422 bad name or slug. */
export async function createOrganization(
  { decide, clock, random }: CommandDeps,
  { name, slug }: { name: string; slug: string },
): Promise<{ organizationId: OrganizationId }> {
  const now = clock()
  const organizationId = timeOrderedId('org', now, random)
  await decide({
    ...stream,
    key: organizationId,
    locks: [`organization-slug:${slug}`],
    // Whoever has the slug may be in any partition.
    reads: 'topic',
    load: async (tx) => ({ takenBy: (await findOrganizationBySlug(tx, slug))?.id }),
    decide: (state) => decideCreation(state, { organizationId, name, slug, now }),
  })
  return { organizationId }
}

export interface IssuedKey {
  keyId: KeyId
  /** The whole key; of a secret key this is the only time that anyone sees it. */
  revealedKey: string
}

/** Issues a key. ApiError: 404 no such organization, 403 not active, 409 too many keys, 422 what does not fit. */
export async function issueApiKey(
  { decide, keyring, clock, random }: CommandDeps,
  { organizationId, ...request }: KeyRequest & { organizationId: string },
): Promise<IssuedKey> {
  const spec = completeKeyRequest(request)
  const { type, environment } = spec
  const now = clock()
  const keyId = timeOrderedId('key', now, random)
  const generated = generateApiKey({ type, environment, keyring, random })
  const { key } = generated
  const material = {
    lookup_hash: generated.lookupHash,
    secret_hash_sealed: type === 'secret' ? sealSecretHash({ keyring, key, keyId, random }) : null,
    key_preview: generated.preview,
    display_key: generated.displayKey,
  }
  await decide({
    ...stream,
    key: organizationId,
    locks: [`organization:${organizationId}`],
    load: async (tx) => ({
      organization: await findOrganization(tx, organizationId),
      counts: await countKeys(tx, organizationId),
    }),
    decide: (state) => decideIssue(state, { organizationId, keyId, spec, material, now }),
  })
  return { keyId, revealedKey: key }
}
