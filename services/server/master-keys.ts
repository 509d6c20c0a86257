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
import { oldestAndNewestSecretKeys } from '../../projections/organizations/queries.ts'
import { eventTopics } from '../../schemas/events.ts'

interface Installation {
  pool: pg.Pool
  log: Pick<EventLog, 'endPositions'>
  keyring: Keyring
  random: Random
}

/**
 * Throws WrongMasterKeys if the master keys decrypt neither the canary nor, if there is none yet, any stored secret.
 * Writes the canary if they decrypt a secret, or if the log shows that no secret was ever stored. An empty database
 * does not prove that: it may be about to be rebuilt.
 */
export async function checkMasterKeys({ pool, log, ...sealing }: Installation): Promise<void> {
  if (await openCanary(pool, sealing.keyring)) return
  if (!(await requireMatchingMasterKeys(pool, sealing.keyring))) {
    const ends = await log.endPositions(eventTopics.OrganizationCreated)
    if (ends.some(({ offset }) => offset > 0)) return
  }
  await writeCanary(pool, sealing)
  // Another process may have written a canary first, with other keys.
  await requireMatchingMasterKeys(pool, sealing.keyring)
}

/** Throws WrongMasterKeys if the keys do not decrypt stored secrets. Returns false if no secret is stored. */
export async function requireMatchingMasterKeys(pool: pg.Pool, keyring: Keyring): Promise<boolean> {
  const canOpen = (await openCanary(pool, keyring)) ?? (await canOpenSecrets(pool, keyring))
  if (canOpen === false) throw new WrongMasterKeys()
  return canOpen !== undefined
}

/** Returns true if a stored secret can be decrypted; undefined if there is none. */
async function canOpenSecrets(pool: pg.Pool, keyring: Keyring): Promise<boolean | undefined> {
  const hashes = await oldestAndNewestSecretKeys(pool)
  const results = [
    ...hashes.map(({ keyId, secretHashSealed }) =>
      openSecretHash(secretHashSealed, { keyring, keyId }),
    ),
    ...(await probeDataKeys(pool, keyring)),
  ]
  return results.length > 0 ? results.some(Boolean) : undefined
}
