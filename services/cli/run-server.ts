import { readConfig } from '../../infra/config.ts'
import { createRandom } from '../../infra/random.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { hasConsentAddress } from '../server/http.ts'
import { parseRoles } from '../server/roles.ts'
import { startServer, stopWithinMs } from '../server/server.ts'
import { runUntilSignal } from './lifetime.ts'

/** Runs the roles, comma-separated, until a signal ends the process. */
export async function runServer(roles: string): Promise<never> {
  const config = readConfig(process.env)
  if (!config.DATABASE_URL) throw new Error('DATABASE_URL is not set (tidegate dev brings its own database)')
  if (!config.TIDEGATE_MASTER_KEYS) throw new Error('TIDEGATE_MASTER_KEYS is not set')
  const chosen = parseRoles(roles)
  const { DATABASE_URL: databaseUrl, TIDEGATE_MASTER_KEYS: masterKeys } = config
  const logger = createLogger(config.LOG_LEVEL)
  if (chosen.includes('gate') && !hasConsentAddress(config))
    logger.warn('PUBLIC_URL is not set or has a path: people cannot open consent pages of Gate')
  const parts = { config, databaseUrl, masterKeys, logger, clock: Date.now, random: createRandom() }
  const start = async (undo: AsyncDisposableStack) => {
    const server = await startServer({ ...parts, roles: chosen })
    undo.defer(() => server.stop())
    console.log(`Tidegate is ready: ${server.url}`)
  }
  return runUntilSignal({ start, stopWithinMs: stopWithinMs(config), logger })
}
