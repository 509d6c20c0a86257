import type pg from 'pg'
import { openSecretHash } from '../../infra/crypto/api-keys.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import { tryDataKeys } from '../../infra/event-store/data-key-table.ts'
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
 * Throws WrongMasterKeys. Creates the canary once a stored secret has been opened, or where nothing was ever stored: a
 * database that is being restored may be empty, too.
 */
export async function checkMasterKeys({ pool, log, ...sealing }: Installation): Promise<void> {
  if (await openCanary(pool, sealing.keyring)) return
  if (!(await tryMasterKeys(pool, sealing.keyring))) {
    const ends = await log.endPositions(eventTopics.OrganizationCreated)
    if (ends.some(({ offset }) => offset > 0)) return
  }
  await writeCanary(pool, sealing)
  // Another process may have been first, with other keys.
  await tryMasterKeys(pool, sealing.keyring)
}

/** Returns false where nothing is stored to try them on. Throws WrongMasterKeys. */
export async function tryMasterKeys(pool: pg.Pool, keyring: Keyring): Promise<boolean> {
  const opens = (await openCanary(pool, keyring)) ?? (await openSecrets(pool, keyring))
  if (opens === false) throw new WrongMasterKeys()
  return opens !== undefined
}

/** Returns whether a stored secret opens; undefined if there is none. */
async function openSecrets(pool: pg.Pool, keyring: Keyring): Promise<boolean | undefined> {
  const hashes = await outermostSecretKeys(pool)
  const tried = [
    ...hashes.map(({ keyId, secretHashSealed }) =>
      openSecretHash(secretHashSealed, { keyring, keyId }),
    ),
    ...(await tryDataKeys(pool, keyring)),
  ]
  return tried.length > 0 ? tried.some(Boolean) : undefined
}
