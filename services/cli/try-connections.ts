import { createKeyring } from '../../infra/crypto/keyring.ts'
import { refuseBoundToKafka, refuseOtherLog } from '../../infra/event-store/bound-log.ts'
import { tryMasterKeys } from '../../infra/event-store/master-key-canary.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { refusePooler } from '../../infra/postgres/pooler.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { within } from '../../infra/timing.ts'
import { openKafka, opensSecrets } from '../server/dependencies.ts'
import type { ServerSettings } from './server-settings.ts'
import { errorMessage, systemCode } from './thrown.ts'

const eachWithinMs = 15_000
const undefinedTable = '42P01'

/** Prints a line for each of database, log and master keys. Changes nothing. Throws where one of them fails. */
export async function tryConnections({ config, databaseUrl, masterKeys }: ServerSettings): Promise<void> {
  await using undo = new AsyncDisposableStack()
  const pool = createPool({ url: databaseUrl, max: 1, queryTimeoutMs: 5000 })
  undo.defer(() => pool.end())
  const failed: string[] = []
  const attempt = async (what: string, work: () => Promise<string>) => {
    const text = await within(work(), eachWithinMs).catch((error: unknown) => {
      failed.push(what)
      return `failed: ${errorMessage(error)}`
    })
    console.log(`${what}: ${text}`)
  }

  await attempt('database', async () => {
    await refusePooler(pool)
    const { rows } = await pool.query<{ server_version: string }>('show server_version')
    return `PostgreSQL ${rows[0]?.server_version}`
  })
  const hasDatabase = failed.length === 0
  await attempt('log', async () => {
    if (config.KAFKA_BROKERS.length === 0) {
      if (hasDatabase) await refuseBoundToKafka(pool)
      return 'in the database, as KAFKA_BROKERS is not set'
    }
    const log = await openKafka({ config, logger: createLogger('silent') })
    // kafkajs may take minutes to close what never opened.
    undo.defer(() => within(log.close(), 2000).catch(() => {}))
    const identity = await log.identity()
    if (hasDatabase) await refuseOtherLog(pool, log)
    return identity
  })
  await attempt('master keys', async () => {
    if (!hasDatabase) throw new Error('not tried, because the database failed')
    const keyring = createKeyring(masterKeys)
    const opensStored = () => opensSecrets(pool, keyring)
    const tried = await tryMasterKeys(pool, { keyring, opensStored }).catch((error: unknown) => {
      if (systemCode(error) !== undefinedTable) throw error
      return undefined
    })
    return tried ? 'they open what the database holds' : 'the database has nothing yet to try them on'
  })
  if (failed.length > 0) throw new Error(`A server could not start: ${failed.join(', ')} failed.`)
}
