import { access, constants, mkdir } from 'node:fs/promises'
import path from 'node:path'
import type pg from 'pg'
import { type Config, misspelledSettings, readConfig } from '../../infra/config.ts'
import { readMasterKeys } from '../../infra/crypto/master-keys.ts'
import { findLiveBuild } from '../../infra/event-store/builds.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { rebuild } from '../../infra/event-store/rebuild.ts'
import { asId } from '../../infra/ids.ts'
import { loadOrCreateMasterKeys, loadOrCreateSimulationKey } from '../../infra/local/development.ts'
import { startEmbeddedPostgres } from '../../infra/local/embedded-postgres.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { createRandom } from '../../infra/random.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { systemCode } from '../../infra/thrown.ts'
import { createLoginLink } from '../console/commands.ts'
import { type Core, type CoreOptions, openCore, projections } from '../server/dependencies.ts'
import { consoleUrlOf } from '../server/http.ts'
import { allRoles } from '../server/roles.ts'
import { startServer, stopWithinMs } from '../server/server.ts'
import { createDemo } from '../web/routes.ts'
import { writePrivate } from './credentials.ts'
import { developmentCredentials } from './development-organization.ts'
import { hostedPackages } from './package/hosted.ts'
import { createServerLogger } from './server-log.ts'
import { DataDirUnusable, startFailureText } from './start-failure.ts'
import { runUntilSignal } from './stop-signals.ts'

// A developer's webhook receivers and proxies run on the same machine.
const defaults = {
  WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8,::1/128',
  FIRST_PARTY_URLS: 'http://localhost,http://127.0.0.1,http://[::1]',
  SDK_PACKAGES: 'on',
}

export async function runDev(): Promise<void> {
  const config = readConfig({ ...defaults, ...process.env })
  const logger = await createServerLogger(config.LOG_LEVEL)
  for (const warning of misspelledSettings(process.env)) logger.warn(warning)
  const start = (undo: AsyncDisposableStack) => startDevelopment(config, logger, undo)
  const onFailure = (error: unknown) => console.error(startFailureText(error))
  await runUntilSignal({ start, stopWithinMs: stopWithinMs(config), logger, onFailure })
}

async function startDevelopment(
  config: Config,
  logger: Logger,
  undo: AsyncDisposableStack,
): Promise<void> {
  const dataDir = path.resolve(config.DATA_DIR)
  await makeDataDir(dataDir)
  const random = createRandom()
  const masterKeys = (await readMasterKeys(config)) ?? loadOrCreateMasterKeys({ dataDir, random })
  const { url, socketUrl: databaseUrl } = config.DATABASE_URL
    ? { url: config.DATABASE_URL, socketUrl: config.DATABASE_URL }
    : await startDatabase(dataDir, logger, undo)
  // Other commands and clients find the database through this file.
  await writePrivate({ dataDir, name: 'database-url', text: `${url}\n` })

  let consoleLink: string | undefined
  const prepare = async (core: Core, baseUrl: string) => {
    const credentials = await developmentCredentials({ core, dataDir, baseUrl })
    const { publishable_key: publishableKey, secret_key: secretKey } = credentials.live
    consoleLink = await developmentLink(core, {
      organizationId: credentials.organization_id,
      baseUrl,
    })
    return createDemo({ publishableKey, secretKey, baseUrl: () => baseUrl })
  }
  const coreOptions = { config, databaseUrl, masterKeys, logger, clock: Date.now, random }
  await rebuildOutdated(coreOptions)
  const simulationKey = loadOrCreateSimulationKey({ dataDir, random })
  const serverOptions = { roles: allRoles, prepare, simulationKey, packages: hostedPackages() }
  const server = await startServer({ ...coreOptions, ...serverOptions })
  undo.defer(() => server.stop())
  console.log(
    summary(server.url, { consoleLink, credentialsFile: path.join(dataDir, 'credentials.json') }),
  )
}

async function makeDataDir(dataDir: string): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true })
    await access(dataDir, constants.W_OK)
  } catch (cause) {
    throw new DataDirUnusable(dataDir, { cause })
  }
}

async function startDatabase(dataDir: string, logger: Logger, undo: AsyncDisposableStack) {
  const postgres = await startEmbeddedPostgres({ dataDir: path.join(dataDir, 'postgres'), logger })
  undo.defer(() => postgres.stop())
  return postgres
}

// Returns a login link that is valid for five minutes; undefined if the console is off.
async function developmentLink(
  core: Core,
  { organizationId, baseUrl }: { organizationId: string; baseUrl: string },
): Promise<string | undefined> {
  if (core.config.CONSOLE === 'off') return undefined
  return createLoginLink(core, {
    organizationId: asId('org', organizationId),
    name: 'tidegate dev',
    role: 'admin',
    environments: ['live', 'test'],
    consoleUrl: consoleUrlOf(core.config, baseUrl),
  })
}

function summary(
  url: string,
  { consoleLink, credentialsFile }: { consoleLink: string | undefined; credentialsFile: string },
): string {
  return [
    `Tidegate is ready: ${url}`,
    '',
    ...(consoleLink ? [`  Console      ${consoleLink}`] : []),
    `  Demo         ${url}/demo`,
    `  Docs         ${url}/docs`,
    `  Errors       ${url}/docs/errors`,
    `  OpenAPI      ${url}/openapi.json`,
    `  Credentials  ${credentialsFile}`,
    '',
  ].join('\n')
}

/**
 * Rebuilds each read model whose tables are from another version of the program. For development only: it reads the whole
 * log, and no other process may update these read models meanwhile.
 */
export async function rebuildOutdated(options: CoreOptions): Promise<void> {
  const outdated = await findOutdated(options.databaseUrl)
  if (outdated.length === 0) return
  await using undo = new AsyncDisposableStack()
  const core = await openCore({ ...options, allowsLongQueries: true })
  undo.defer(core.close)
  for (const projection of outdated) {
    const { records, seconds } = await rebuild({ ...core, projection, acceptDifferences: true })
    const fields = { projection: projection.name, version: projection.version, records, seconds }
    core.logger.info(fields, 'rebuilt an outdated read model')
  }
}

async function findOutdated(url: string): Promise<Projection[]> {
  const pool = createPool({ url, max: 1 })
  try {
    const versions = await Promise.all(projections.map(({ name }) => liveVersion(pool, name)))
    return projections.filter(
      ({ version }, i) => versions[i] !== undefined && versions[i] !== version,
    )
  } finally {
    await pool.end()
  }
}

async function liveVersion(pool: pg.Pool, projection: string): Promise<number | undefined> {
  const build = await findLiveBuild(pool, projection).catch((error: unknown) => {
    if (systemCode(error) !== undefinedTable) throw error
    return undefined
  })
  return build?.version
}

const undefinedTable = '42P01'
