import { createKeyring } from '../../infra/crypto/keyring.ts'
import { refuseBoundToKafka, refuseOtherLog } from '../../infra/event-store/bound-log.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { refusePooler } from '../../infra/postgres/pooler.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { errorMessage, systemCode } from '../../infra/thrown.ts'
import { within } from '../../infra/timing.ts'
import { learnFrom, readProgress } from '../../projections/answers/learned.ts'
import { openKafka } from '../server/dependencies.ts'
import { tryMasterKeys } from '../server/master-keys.ts'
import type { ServerSettings } from './server-settings.ts'

const eachWithinMs = 15_000
const undefinedTable = '42P01'

/** Prints a line for each of database, log, master keys and browser engines. Changes nothing. Throws where one of them fails. */
export async function tryConnections({
  config,
  databaseUrl,
  masterKeys,
}: ServerSettings): Promise<void> {
  await using undo = new AsyncDisposableStack()
  const pool = createPool({ url: databaseUrl, max: 1, queryTimeoutMs: 5000 })
  undo.defer(() => pool.end())

  const outcomes = [
    await attempt('database', async () => {
      await refusePooler(pool)
      const { rows } = await pool.query<{ server_version: string }>('show server_version')
      return `PostgreSQL ${rows[0]?.server_version}`
    }),
    await attempt('log', async () => {
      if (config.KAFKA_BROKERS.length === 0) {
        await refuseBoundToKafka(pool)
        return 'in the database, as KAFKA_BROKERS is not set'
      }
      const log = await openKafka({ config, logger: createLogger('silent') })
      // kafkajs may take minutes to close what never opened.
      undo.defer(() => within(log.close(), 2000).catch(() => {}))
      const identity = await log.identity()
      await refuseOtherLog(pool, log)
      return identity
    }),
    await attempt('master keys', async () => {
      const isTried = await tryMasterKeys(pool, createKeyring(masterKeys)).catch(
        (error: unknown) => {
          if (systemCode(error) === undefinedTable) return false
          throw error
        },
      )
      return isTried
        ? 'they open what the database holds'
        : 'the database has nothing yet to try them on'
    }),
    await attempt('browser engines', async () => {
      const about = { pool, now: Date.now(), keys: createKeyring(masterKeys).all }
      const { overview } = await readProgress(about).catch((error: unknown) => {
        if (systemCode(error) === undefinedTable) return learnFrom([], about)
        throw error
      })
      const shown = overview().filter(({ environment }) => environment === 'live')
      return shown
        .map(({ engine, isLearned, visitors, needed }) =>
          isLearned ? `${engine} learned` : `${engine} ${visitors} of ${needed} visitors`,
        )
        .join(', ')
    }),
  ]
  if (outcomes.includes(false)) throw new Error('A server could not start with these connections.')
}

async function attempt(part: string, work: () => Promise<string>): Promise<boolean> {
  try {
    console.log(`${part}: ${await within(work(), eachWithinMs)}`)
    return true
  } catch (error) {
    console.log(`${part}: failed: ${errorMessage(error)}`)
    return false
  }
}
