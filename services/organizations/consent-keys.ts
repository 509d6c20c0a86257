import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import type { Principal } from '../../infra/access/principal.ts'
import { lookupHashes, openSecretHash } from '../../infra/crypto/api-keys.ts'
import { currentOnly, type Keyring } from '../../infra/crypto/keyring.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import type { Decide, DecideAs } from '../../infra/event-store/decide.ts'
import { type Clock, type Random, timeOrderedId } from '../../infra/ids.ts'
import { seldom } from '../../infra/timing.ts'
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

const zeros: Random = (size) => Buffer.alloc(size)
// The organization of the server itself has this id in every installation. Nobody else can have it.
const organizationId = timeOrderedId('org', 0, zeros)
/** It has the sessions of consent pages, and what is erased of them. */
export const ownOrganizationId: string = organizationId
const slug = 'tidegate-consent'
/** Everybody can read the key of a consent page, and a program that is no browser can send its origin. */
export function isConsentPageKey({ organizationId: owner, type }: Principal): boolean {
  return owner === organizationId && type === 'publishable'
}

// A verified key is believed everywhere for as long.
const rememberMs = 15_000
// Addresses of one installation, those included whose servers no longer run.
const maxOrigins = 10

/**
 * The keys that consent pages are scored with belong to an organization of the server's own. They are made when they
 * are first needed, and replaced once they are revoked or another master key is the current one. Browsers elsewhere
 * cannot use the publishable key, so a page that lures people cannot make proofs for other people's signups. Both
 * functions reject with 503 while the organization is not active.
 */
export function createConsentKeys({ decideAs, ...rest }: ConsentKeysOptions) {
  const options = { ...rest, decide: decideAs({ type: 'service', id: 'consent-keys' }) }
  const { origin, protocol } = new URL(options.publicUrl)
  // Only test keys may be bound to an http origin, as a server on one's own machine has.
  const environment: Environment = protocol === 'https:' ? 'live' : 'test'
  return {
    publishableKey: seldom(
      rememberMs,
      () => publishableKey(options, { origin, environment }),
      options.clock,
    ),
    secretHashes: seldom(rememberMs, () => secretHashes(options, environment), options.clock),
  }
}

// Another server on the same database may be reached at another origin, and has a key of its own.
async function publishableKey(
  options: ConsentDeps,
  page: { origin: string; environment: Environment },
): Promise<string> {
  // The page's sealed tokens need somebody who can open them.
  await secretHashes(options, page.environment)
  const allowed_origins = [page.origin]
  const keys = await activePublishableKeys(options.pool, organizationId, page.environment)
  const known = keys.find(
    (key) =>
      isDeepStrictEqual(key.allowed_origins, allowed_origins) && isOfCurrent(key, options.keyring),
  )
  if (known?.display_key) return known.display_key
  const { environment } = page
  const spec = { organizationId, environment, name: 'Consent page', allowed_origins }
  const { revealedKey } = await issueApiKey(options, {
    ...spec,
    type: 'publishable',
    by: 'operator',
  })
  // Revokes the keys of addresses that are used no more. A server that still runs gets a new one as soon as it needs it.
  for (const { id: keyId } of keys.slice(maxOrigins - 1))
    await revokeApiKey(options, { organizationId, keyId, by: 'operator' })
  return revealedKey
}

function isOfCurrent({ display_key, lookup_hash }: ApiKeyRow, keyring: Keyring): boolean {
  return (
    display_key !== null && lookupHashes(currentOnly(keyring), display_key).includes(lookup_hash)
  )
}

async function secretHashes(options: ConsentDeps, environment: Environment): Promise<string[]> {
  const { pool, keyring, clock } = options
  await ensureOrganization(options)
  const find = async (by: Keyring) =>
    (await recipientKeys(pool, organizationId, environment, clock())).flatMap(
      ({ keyId, secretHashSealed }) =>
        openSecretHash(secretHashSealed, { keyring: by, keyId }) ?? [],
    )
  if ((await find(currentOnly(keyring))).length > 0) return find(keyring)
  const spec = { organizationId, environment, name: 'Consent proofs', scopes: ['sessions:read'] }
  await issueApiKey(options, { ...spec, type: 'secret', by: 'operator' })
  return find(keyring)
}

// An operator switches consent pages and approvals off by suspending the organization: 503.
async function ensureOrganization(options: ConsentDeps): Promise<void> {
  const organization = await findOrganization(options.pool, organizationId)
  if (organization?.status === 'active') return
  if (organization)
    throw new ApiError('service.unavailable', { message: 'Gate is switched off on this server.' })
  const name = 'Tidegate consent pages'
  const own = { ...options, random: zeros, idTime: 0 }
  try {
    await createOrganization(own, { name, slug })
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 'request.conflict')) throw error
    // Somebody had the slug before the first consent page was opened.
    await createOrganization(own, { name, slug: `${slug}-${options.random(4).toString('hex')}` })
  }
}
