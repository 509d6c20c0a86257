import type { Command } from 'commander'
import { readConfig } from '../../infra/config.ts'
import { createRandom } from '../../infra/random.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { hasConsentAddress } from '../server/http.ts'
import { allRoles, parseRoles, startServer, stopWithinMs } from '../server/server.ts'
import { runUntilSignal } from './lifetime.ts'

export function registerServe(program: Command): void {
  program
    .command('serve')
    .description('Run some or all roles against an existing database and log')
    .option('--roles <list>', `comma-separated: ${allRoles.join(', ')}`, allRoles.join(','))
    .action(async ({ roles }: { roles: string }) => {
      const config = readConfig(process.env)
      if (!config.DATABASE_URL)
        throw new Error('DATABASE_URL is not set (tidegate dev brings its own database)')
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
      await runUntilSignal({ start, stopWithinMs: stopWithinMs(config), logger })
    })
}
