import { LRUCache } from 'lru-cache'
import { openSecretHash } from '../../infra/crypto/api-keys.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { Clock, KeyId } from '../../infra/ids.ts'
import type { HandOffRequest } from './deps.ts'

export type RecipientTenant = Pick<HandOffRequest, 'organizationId' | 'environment'>

export interface RecipientsOptions {
  /** The live secret keys of an organization and environment, newest first. */
  findKeys: (tenant: RecipientTenant) => Promise<{ keyId: KeyId; secretHashSealed: Buffer }[]>
  keyring: Keyring
  clock: Clock
  /** How long an answer is believed, milliseconds (default 5000): a key issued later opens tokens after that. */
  cacheMs?: number
}

/** Whose keys may open a token: the SHA-256 (hex) of each live secret key, each list asked for once per `cacheMs`. */
export function createRecipients({ findKeys, keyring, clock, cacheMs = 5000 }: RecipientsOptions) {
  const known = new LRUCache<string, { hashes: Promise<string[]>; expiresAt: number }>({ max: 10_000 })

  async function load(tenant: RecipientTenant): Promise<string[]> {
    const keys = await findKeys(tenant)
    return keys.flatMap(
      ({ keyId, secretHashSealed }) => openSecretHash(secretHashSealed, { keyring, keyId }) ?? [],
    )
  }

  return (tenant: RecipientTenant): Promise<string[]> => {
    const id = `${tenant.organizationId}/${tenant.environment}`
    const entry = known.get(id)
    if (entry && clock() < entry.expiresAt) return entry.hashes
    const hashes = load(tenant)
    known.set(id, { hashes, expiresAt: clock() + cacheMs })
    hashes.catch(() => known.delete(id))
    return hashes
  }
}
