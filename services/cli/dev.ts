import path from 'node:path'
import type { Command } from 'commander'
import { readConfig } from '../../infra/config.ts'
import { startEmbeddedPostgres } from '../../infra/local/embedded-postgres.ts'
import { developmentMasterKeys } from '../../infra/local/master-keys.ts'
import { createRandom } from '../../infra/random.ts'
import { createLogger } from '../../infra/telemetry.ts'
import type { Core } from '../core.ts'
import { createDemo } from '../web/routes.ts'
import { allRoles, startServer } from '../wiring.ts'
import { developmentCredentials, writePrivate } from './development.ts'
import { stopOnSignal } from './serve.ts'

/** `tidegate dev` (make run): every role on one machine, with a database, master keys, an organization and keys. */
export function registerDev(program: Command): void {
  program
    .command('dev')
    .description('Run everything on this machine, with an embedded Postgres and a development organization')
    .action(runDev)
}

async function runDev(): Promise<void> {
  const config = readConfig(process.env)
  const logger = createLogger(config.LOG_LEVEL)
  const dataDir = path.resolve(config.DATA_DIR)
  const random = createRandom()
  const masterKeys = config.TIDEGATE_MASTER_KEYS ?? developmentMasterKeys({ dataDir, random })
  const postgres = config.DATABASE_URL
    ? { url: config.DATABASE_URL, stop: async () => {} }
    : await startEmbeddedPostgres({ dataDir: path.join(dataDir, 'postgres'), logger })
  // Other commands find the database of this installation here.
  await writePrivate({ dataDir, name: 'database-url', text: `${postgres.url}\n` })

  const prepare = async (core: Core, baseUrl: string) => {
    const credentials = await developmentCredentials({ core, dataDir, baseUrl })
    const { publishable_key: publishableKey, secret_key: secretKey } = credentials.live
    return createDemo({ publishableKey, secretKey, baseUrl: () => baseUrl })
  }
  const parts = {
    config,
    databaseUrl: postgres.url,
    masterKeys,
    logger,
    clock: Date.now,
    random,
  }
  const server = await startServer({ ...parts, roles: allRoles, prepare })
  stopOnSignal(async () => {
    await server.stop()
    await postgres.stop()
  })
  console.log(summary(server.url, path.join(dataDir, 'credentials.json')))
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
