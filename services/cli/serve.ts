import type { Command } from 'commander'
import { readConfig } from '../../infra/config.ts'
import { createRandom } from '../../infra/random.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { allRoles, parseRoles, startServer } from '../wiring.ts'

/** `tidegate serve`: the roles of a production process; everything it needs comes from its settings. */
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
      const logger = createLogger(config.LOG_LEVEL)
      const server = await startServer({
        config,
        databaseUrl: config.DATABASE_URL,
        masterKeys: config.TIDEGATE_MASTER_KEYS,
        roles: parseRoles(roles),
        logger,
        clock: Date.now,
        random: createRandom(),
      })
      console.log(`Tidegate is ready: ${server.url}`)
      stopOnSignal(() => server.stop())
    })
}

/** Runs `stop` once on SIGTERM or SIGINT, then ends; a second signal ends at once. */
export function stopOnSignal(stop: () => Promise<void>): void {
  let stopping = false
  const onSignal = () => {
    if (stopping) process.exit(1)
    stopping = true
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error)
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}
