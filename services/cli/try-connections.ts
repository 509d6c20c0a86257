import { createKeyring } from '../../infra/crypto/keyring.ts'
import { refuseBoundToKafka, refuseOtherLog } from '../../infra/event-store/bound-log.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { refusePooler } from '../../infra/postgres/pooler.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { errorMessage, systemCode } from '../../infra/thrown.ts'
import { withTimeout } from '../../infra/timing.ts'
import { createLearnedAnswers, readLearningProgress } from '../../projections/answers/learned.ts'
import { openKafka } from '../server/dependencies.ts'
import { requireMatchingMasterKeys } from '../server/master-keys.ts'
import type { ServerSettings } from './server-settings.ts'

const checkTimeoutMs = 15_000
const undefinedTable = '42P01'

/**
 * Checks the database, the log, the master keys and the browser engines, and prints a line for each. Changes nothing.
 * Throws if a check fails.
 */
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
        return 'embedded in the database (KAFKA_BROKERS is not set)'
      }
      const log = await openKafka({ config, logger: createLogger('silent') })
      // kafkajs can take minutes to close a connection that never opened.
      undo.defer(() => withTimeout(log.close(), 2000).catch(() => {}))
      const identity = await log.identity()
      await refuseOtherLog(pool, log)
      return identity
    }),
    await attempt('master keys', async () => {
      const isChecked = await requireMatchingMasterKeys(pool, createKeyring(masterKeys)).catch(
        (error: unknown) => {
          if (systemCode(error) === undefinedTable) return false
          throw error
        },
      )
      return isChecked ? 'match the database' : 'not checked: the database is empty'
    }),
    await attempt('browser engines', async () => {
      const options = { pool, now: Date.now(), keys: createKeyring(masterKeys).all }
      const { overview } = await readLearningProgress(options).catch((error: unknown) => {
        if (systemCode(error) === undefinedTable) return createLearnedAnswers([], options)
        throw error
      })
      const liveEngines = overview().filter(({ environment }) => environment === 'live')
      return liveEngines
        .map(({ engine, isLearned, visitors, needed }) =>
          isLearned ? `${engine} learned` : `${engine} ${visitors} of ${needed} visitors`,
        )
        .join(', ')
    }),
  ]
  if (outcomes.includes(false))
    throw new Error('A server could not start: see the failed checks above.')
}

async function attempt(part: string, work: () => Promise<string>): Promise<boolean> {
  try {
    console.log(`${part}: ${await withTimeout(work(), checkTimeoutMs)}`)
    return true
  } catch (error) {
    console.log(`${part}: failed: ${errorMessage(error)}`)
    return false
  }
}
