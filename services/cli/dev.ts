import path from 'node:path'
import type { Command } from 'commander'
import { type Config, readConfig } from '../../infra/config.ts'
import { developmentDatabases, developmentMasterKeys } from '../../infra/local/development.ts'
import { startEmbeddedPostgres } from '../../infra/local/embedded-postgres.ts'
import { createRandom } from '../../infra/random.ts'
import { createLogger, type Logger } from '../../infra/telemetry.ts'
import type { Core } from '../server/dependencies.ts'
import { allRoles, startServer, stopWithinMs } from '../server/server.ts'
import { createDemo } from '../web/routes.ts'
import { developmentCredentials, writePrivate } from './credentials.ts'
import { runUntilSignal } from './lifetime.ts'
import { rebuildOutdated } from './rebuild.ts'

export function registerDev(program: Command): void {
  program
    .command('dev')
    .description('Run everything on this machine, with an embedded Postgres and a development organization')
    .action(runDev)
}

async function runDev(): Promise<void> {
  const defaults = {
    CITY_MMDB: developmentDatabases().cityPath,
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8,::1/128',
  }
  const config = readConfig({ ...defaults, ...process.env })
  const logger = createLogger(config.LOG_LEVEL)
  const start = (undo: AsyncDisposableStack) => startDevelopment({ config, logger, undo })
  await runUntilSignal({ start, stopWithinMs: stopWithinMs(config), logger })
}

interface DevelopmentStart {
  config: Config
  logger: Logger
  undo: AsyncDisposableStack
}

async function startDevelopment({ config, logger, undo }: DevelopmentStart): Promise<void> {
  const dataDir = path.resolve(config.DATA_DIR)
  const random = createRandom()
  const masterKeys = config.TIDEGATE_MASTER_KEYS ?? developmentMasterKeys({ dataDir, random })
  const databaseUrl = config.DATABASE_URL ?? (await startDatabase(dataDir, { logger, undo }))
  // Other commands find the database of this installation here.
  await writePrivate({ dataDir, name: 'database-url', text: `${databaseUrl}\n` })

  const prepare = async (core: Core, baseUrl: string) => {
    const credentials = await developmentCredentials({ core, dataDir, baseUrl })
    const { publishable_key: publishableKey, secret_key: secretKey } = credentials.live
    return createDemo({ publishableKey, secretKey, baseUrl: () => baseUrl })
  }
  const parts = { config, databaseUrl, masterKeys, logger, clock: Date.now, random }
  await rebuildOutdated(parts)
  const server = await startServer({ ...parts, roles: allRoles, prepare })
  undo.defer(() => server.stop())
  console.log(summary(server.url, path.join(dataDir, 'credentials.json')))
}

async function startDatabase(dataDir: string, { logger, undo }: Omit<DevelopmentStart, 'config'>) {
  const postgres = await startEmbeddedPostgres({ dataDir: path.join(dataDir, 'postgres'), logger })
  undo.defer(() => postgres.stop())
  return postgres.url
}

function summary(url: string, credentialsFile: string): string {
  return [
    `Tidegate is ready: ${url}`,
    '',
    `  Demo         ${url}/demo`,
    `  API docs     ${url}/docs`,
    `  Errors       ${url}/docs/errors`,
    `  OpenAPI      ${url}/openapi.json`,
    `  Credentials  ${credentialsFile}`,
    '',
  ].join('\n')
}
