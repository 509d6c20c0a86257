import type pg from 'pg'
import { openSecretHash } from '../../infra/crypto/api-keys.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import { probeDataKeys } from '../../infra/event-store/data-key-table.ts'
import {
  openCanary,
  WrongMasterKeys,
  writeCanary,
} from '../../infra/event-store/master-key-canary.ts'
import type { Random } from '../../infra/ids.ts'
import type { EventLog } from '../../infra/log/port.ts'
import { outermostSecretKeys } from '../../projections/organizations/queries.ts'
import { eventTopics } from '../../schemas/events.ts'

interface Installation {
  pool: pg.Pool
  log: Pick<EventLog, 'endPositions'>
  keyring: Keyring
  random: Random
}

/**
 * Throws WrongMasterKeys if the master keys do not decrypt the canary or, before there is one, any stored secret.
 * Writes the canary once a stored secret could be decrypted, or if the log shows that there never was one. An empty
 * database alone does not suffice, because it may be about to be rebuilt.
 */
export async function checkMasterKeys({ pool, log, ...sealing }: Installation): Promise<void> {
  if (await openCanary(pool, sealing.keyring)) return
  if (!(await tryMasterKeys(pool, sealing.keyring))) {
    const ends = await log.endPositions(eventTopics.OrganizationCreated)
    if (ends.some(({ offset }) => offset > 0)) return
  }
  await writeCanary(pool, sealing)
  // Another process may have written a canary first, with other keys.
  await tryMasterKeys(pool, sealing.keyring)
}

/** Throws WrongMasterKeys if the keys do not decrypt a stored secret. Returns false if nothing is stored. */
export async function tryMasterKeys(pool: pg.Pool, keyring: Keyring): Promise<boolean> {
  const canOpen = (await openCanary(pool, keyring)) ?? (await openSecrets(pool, keyring))
  if (canOpen === false) throw new WrongMasterKeys()
  return canOpen !== undefined
}

/** Returns true if a stored secret can be decrypted; undefined if there is none. */
async function openSecrets(pool: pg.Pool, keyring: Keyring): Promise<boolean | undefined> {
  const hashes = await outermostSecretKeys(pool)
  const results = [
    ...hashes.map(({ keyId, secretHashSealed }) =>
      openSecretHash(secretHashSealed, { keyring, keyId }),
    ),
    ...(await probeDataKeys(pool, keyring)),
  ]
  return results.length > 0 ? results.some(Boolean) : undefined
}
