// Keys of Gate's consent pages. They belong to an organization of the server itself, so that the pages are scored like
// customers' pages. Keys are issued on first use, and replaced when they are revoked or the master key changes.

import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import type { Principal } from '../../infra/access/principal.ts'
import { lookupHashes, openSecretHash } from '../../infra/crypto/api-keys.ts'
import { type Keyring, withCurrentKeyOnly } from '../../infra/crypto/keyring.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import type { Decide, DecideAs } from '../../infra/event-store/decide.ts'
import { type Clock, type Random, timeOrderedId } from '../../infra/ids.ts'
import { cachedFor } from '../../infra/timing.ts'
import {
  activePublishableKeys,
  findOrganization,
  recipientKeys,
} from '../../projections/organizations/queries.ts'
import type { ApiKeyRow } from '../../projections/organizations/tables.ts'
import type { Environment } from '../../schemas/events.ts'
import { createOrganization, issueApiKey, revokeApiKey } from './commands.ts'

export interface ConsentKeysOptions {
  publicUrl: string
  pool: pg.Pool
  decideAs: DecideAs
  keyring: Keyring
  clock: Clock
  random: Random
}

type ConsentDeps = Omit<ConsentKeysOptions, 'decideAs'> & { decide: Decide }

const zeroBytes: Random = (size) => Buffer.alloc(size)
// The same id in every installation. No other organization can get it.
const organizationId = timeOrderedId('org', 0, zeroBytes)
/** Organization of the server itself, which the sessions of consent pages belong to. */
export const serverOrganizationId: string = organizationId
const slug = 'tidegate-consent'
/** Returns true for a consent page's key. It is public, and a program can forge its origin. */
export function isConsentPageKey({ organizationId: owner, type }: Principal): boolean {
  return owner === organizationId && type === 'publishable'
}

// Same as the cache of verified API keys.
const cacheMs = 15_000
// Limits the origins of one installation, including those of servers that no longer run.
const maxOrigins = 10

/**
 * Returns cached readers of the keys, which issue missing keys. The publishable key is bound to the page's origin, so a
 * phishing page cannot make proofs for other people's signups. Both reject with 503 while the organization is not
 * active.
 */
export function createConsentKeys({ decideAs, ...rest }: ConsentKeysOptions) {
  const options = { ...rest, decide: decideAs({ type: 'service', id: 'consent-keys' }) }
  const { origin, protocol } = new URL(options.publicUrl)
  // A local server has an http origin, which only test keys can be bound to.
  const environment: Environment = protocol === 'https:' ? 'live' : 'test'
  return {
    publishableKey: cachedFor(
      cacheMs,
      () => ensurePublishableKey(options, { origin, environment }),
      options.clock,
    ),
    secretHashes: cachedFor(cacheMs, () => ensureSecretHashes(options, environment), options.clock),
  }
}

// Each origin has its own key, because servers on the same database can have different public URLs.
async function ensurePublishableKey(
  options: ConsentDeps,
  page: { origin: string; environment: Environment },
): Promise<string> {
  // The page's sealed tokens need a secret key that can decrypt them.
  await ensureSecretHashes(options, page.environment)
  const allowed_origins = [page.origin]
  const keys = await activePublishableKeys(options.pool, organizationId, page.environment)
  const current = keys.find(
    (key) =>
      isDeepStrictEqual(key.allowed_origins, allowed_origins) && isCurrentKey(key, options.keyring),
  )
  if (current?.display_key) return current.display_key
  const { environment } = page
  const spec = { organizationId, environment, name: 'Consent page', allowed_origins }
  const { revealedKey } = await issueApiKey(options, {
    ...spec,
    type: 'publishable',
    by: 'operator',
  })
  // Revokes keys of the oldest origins. A server that still needs one issues a new key.
  for (const { id: keyId } of keys.slice(maxOrigins - 1))
    await revokeApiKey(options, { organizationId, keyId, by: 'operator' })
  return revealedKey
}

function isCurrentKey({ display_key, lookup_hash }: ApiKeyRow, keyring: Keyring): boolean {
  return (
    display_key !== null &&
    lookupHashes(withCurrentKeyOnly(keyring), display_key).includes(lookup_hash)
  )
}

async function ensureSecretHashes(
  options: ConsentDeps,
  environment: Environment,
): Promise<string[]> {
  const { pool, keyring, clock } = options
  await ensureOrganization(options)
  const find = async (by: Keyring) =>
    (await recipientKeys(pool, organizationId, environment, clock())).flatMap(
      ({ keyId, secretHashSealed }) =>
        openSecretHash(secretHashSealed, { keyring: by, keyId }) ?? [],
    )
  if ((await find(withCurrentKeyOnly(keyring))).length > 0) return find(keyring)
  const spec = { organizationId, environment, name: 'Consent proofs', scopes: ['sessions:read'] }
  await issueApiKey(options, { ...spec, type: 'secret', by: 'operator' })
  return find(keyring)
}

// Creates the organization if missing. Throws 503 if an operator suspended it, which turns off consent and approvals.
async function ensureOrganization(options: ConsentDeps): Promise<void> {
  const organization = await findOrganization(options.pool, organizationId)
  if (organization?.status === 'active') return
  if (organization)
    throw new ApiError('service.unavailable', { message: 'Gate is switched off on this server.' })
  const name = 'Tidegate consent pages'
  const deps = { ...options, random: zeroBytes, idTime: 0 }
  try {
    await createOrganization(deps, { name, slug })
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 'request.conflict')) throw error
    // A customer took the slug before the first consent page was opened.
    await createOrganization(deps, { name, slug: `${slug}-${options.random(4).toString('hex')}` })
  }
}
