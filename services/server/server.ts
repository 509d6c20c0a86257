import fastify, { type FastifyInstance } from 'fastify'
import { Registry } from 'prom-client'
import { catalogueDomains } from '../../infra/agents/catalogue.ts'
import { addressFileOf, type Config } from '../../infra/config.ts'
import { drain, listen, listenShared, reservePort } from '../../infra/http/listening.ts'
import { createMissingProxyDetector } from '../../infra/http/missing-proxy.ts'
import { followAddresses, followLists } from '../../infra/ip/data/follow.ts'
import { type NetworkSource, noNetwork, openNetwork } from '../../infra/ip/network.ts'
import { openOtlp, otlpStopMs } from '../../infra/otlp/otlp.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { refusePooler } from '../../infra/postgres/pooler.ts'
import { createAddressRules } from '../../infra/safe-http/addresses.ts'
import { createWebhookClient } from '../../infra/safe-http/client.ts'
import { lookUpTxt } from '../../infra/safe-http/txt.ts'
import { withTimeout } from '../../infra/timing.ts'
import type { SimulationKey } from '../../infra/wire/collect/simulation.ts'
import { directoryOf } from '../../infra/wire/web-bot-auth/fields.ts'
import { eraseGateSession, eraseGateSessions } from '../erasure/gate.ts'
import type { GateOptions } from '../gate/context.ts'
import { startGate } from '../gate/gate.ts'
import { createGateMeter } from '../gate/metrics.ts'
import { consentingPerson } from '../gate/sessions.ts'
import { createConsentKeys, serverOrganizationId } from '../organizations/consent-keys.ts'
import { signUpOrganization } from '../organizations/sign-up.ts'
import { createSchemasApp } from '../schemas/routes.ts'
import { servedSchemas } from '../schemas/served.ts'
import { followDirectories } from '../scoring/identity/directories.ts'
import { followTrustedDirectories } from '../scoring/identity/trusted-directories.ts'
import type { PackageSource } from '../web/packages.ts'
import type { Demo } from '../web/routes.ts'
import { createSigningSecrets } from '../webhooks/deliveries/attempt.ts'
import { createDirectCalls } from '../webhooks/direct-calls.ts'
import { createAccessControl } from './access.ts'
import { openCollect } from './collect.ts'
import { type Connections, connectionsOf } from './connections.ts'
import { type Core, type CoreOptions, openCore } from './dependencies.ts'
import { createConsoleApp, createHttp, publicUrlOf } from './http.ts'
import { createLocalDecisions } from './local-decisions.ts'
import type { Role } from './roles.ts'
import { type AgentKnowledge, addRoutes } from './routes.ts'
import { respondWhileStarting } from './starting.ts'
import { startWorkers, type WorkerParts } from './workers.ts'

export interface ServerOptions extends CoreOptions {
  roles: readonly Role[]
  /** Runs after the projections start and before requests are accepted. Returns the data of the page /demo. */
  prepare?: (core: Core, publicUrl: string) => Promise<Demo>
  /** Set by `tidegate dev` only. */
  simulationKey?: SimulationKey
  /** Set by tests only: agents choose the addresses that are looked up, and must not reach the internal network. */
  lookupOptions?: WorkerParts['lookupOptions']
  /** npm packages that are served with SDK_PACKAGES=on. */
  packages?: PackageSource | undefined
}

export interface Server {
  url: string
  /** Rejects if something fails to close. */
  stop(): Promise<void>
}

const closeMs = 5000
const cleanUpMs = 3000

/** Returns the milliseconds after which a stop is considered to hang. */
export const stopWithinMs = (config: Config): number =>
  config.DRAIN_MS + closeMs + cleanUpMs + otlpStopMs(config) + 500

/** Starts a server with the roles. If that fails, stops everything that was started and leaves the consumer groups. */
export async function startServer({ roles, prepare, ...options }: ServerOptions): Promise<Server> {
  const { config, logger, simulationKey, lookupOptions, packages } = options
  const undo = new AsyncDisposableStack()
  const cleanUp = () => withTimeout(undo.disposeAsync(), cleanUpMs + otlpStopMs(config))
  let stopping = false
  const isStopping = () => stopping
  try {
    const network = await openNetworkSource(config, {
      roles,
      undo,
      warn: (text) => logger.warn(text),
    })
    await checkDatabase(options.databaseUrl)
    const reservedPort = await reservePort(
      { port: config.PORT, host: config.HOST },
      respondWhileStarting(options),
    )
    undo.defer(reservedPort.release)
    const publicUrl = publicUrlOf(config, reservedPort.port)
    const registry = new Registry()
    const otlp = await openOtlp(config, logger)
    const connections = connectionsOfServer(config, roles)
    const shared = { connections, waitsForLog: true, tracing: otlp?.tracing }
    const core = await openCore({ logClaim: { takeOver: false }, ...options, ...shared })
    undo.defer(core.close)
    undo.defer(() => otlp?.stop())
    await logReplicationWarnings(core)
    const localDecisions = roles.includes('collect')
      ? createLocalDecisions(core.applied)
      : undefined
    const running = await startWorkers(core, {
      roles,
      network,
      registry,
      simulationKey,
      lookupOptions,
      localDecisions,
      undo,
    })
    const meter = roles.includes('gate') ? createGateMeter(registry) : undefined
    const gate = meter && startGate({ ...gateOptions(core, { publicUrl, network }), meter })
    undo.defer(() => gate?.stop())
    const demo = await prepare?.(core, publicUrl)
    const metrics = config.METRICS_PORT === undefined ? undefined : fastify()
    undo.defer(() => metrics?.close())
    const schemas = openSchemas(core, roles)
    undo.defer(() => schemas?.close())
    const isDevelopment = simulationKey !== undefined
    const missingProxy = createMissingProxyDetector(core)
    const { app, counters } = await createHttp(core, {
      roles,
      running,
      registry,
      missingProxy,
      undo,
      publicUrl,
      isStopping,
      metrics,
    })
    const accessControl = createAccessControl(core, { counters, undo })
    const collect = localDecisions
      ? {
          ...openCollect(core, { registry, undo }),
          missingProxy,
          exemptsLoopback: isDevelopment,
          localDecisions,
        }
      : undefined
    const agents = roles.includes('api') ? await followAgents(core, undo) : undefined
    const consoles = roles.includes('api')
      ? await createConsoleApp(core, { app, publicUrl, isStopping })
      : {}
    undo.defer(() => consoles.separateApp?.close())
    const resultSealer = await addRoutes(app, {
      core,
      accessControl,
      network,
      roles,
      demo,
      gate,
      collect,
      publicUrl,
      agents,
      registry,
      consoleApp: consoles.app,
      missingProxy,
      isDevelopment,
      packages: config.SDK_PACKAGES === 'on' ? packages : undefined,
    })
    undo.defer(() => resultSealer?.close())
    undo.defer(() => app.close())
    await listenOnPort(metrics, 'METRICS_PORT', config)
    await listenOnPort(schemas, 'SCHEMAS_PORT', config)
    await listenOnPort(consoles.separateApp, 'CONSOLE_PORT', config)
    await reservedPort.release()
    await listenShared(app, { port: reservedPort.port, host: config.HOST })
    const stop = async () => {
      stopping = true
      await drain(app, { drainMs: config.DRAIN_MS, closeMs })
      await cleanUp()
    }
    return { url: publicUrl, stop }
  } catch (error) {
    await cleanUp().catch((err) => logger.warn({ err }, 'failed to clean up after a failed start'))
    throw error
  }
}

// Runs before the port is reserved, so that a wrong DATABASE_URL is reported before a port that is in use.
async function checkDatabase(url: string): Promise<void> {
  const pool = createPool({ url, max: 1 })
  await refusePooler(pool).finally(() => pool.end())
}

// `app` is undefined if the setting is not set.
async function listenOnPort(
  app: FastifyInstance | undefined,
  setting: 'METRICS_PORT' | 'SCHEMAS_PORT' | 'CONSOLE_PORT',
  config: Config,
): Promise<void> {
  if (app) await listen(app, { port: config[setting] ?? 0, host: config.HOST, setting })
}

// Uses a separate port, because callers are internal and errors have a different format.
function openSchemas({ config, codec }: Core, roles: readonly Role[]): FastifyInstance | undefined {
  if (config.SCHEMAS_PORT === undefined || !roles.includes('api')) return undefined
  const schemas = servedSchemas(codec.schemaId, config.KAFKA_TOPIC_PREFIX)
  return createSchemasApp({ schemas, credentials: config.SCHEMAS_AUTH })
}

async function logReplicationWarnings({ log, logger }: Core): Promise<void> {
  const asWarning = (error: Error) => [
    `failed to check the replication of the log: ${error.message}`,
  ]
  for (const warning of await log.warnings().catch(asWarning)) logger.warn(warning)
}

/** Throws if DATABASE_MAX_CONNECTIONS is too small for the roles. */
export function connectionsOfServer(config: Config, roles: readonly Role[]): Connections {
  const isLogEmbedded = config.KAFKA_BROKERS.length === 0
  return connectionsOf({ roles, isLogEmbedded, max: config.DATABASE_MAX_CONNECTIONS })
}

/**
 * Opens the configured IP databases, reputation lists and address file, for roles that look up addresses. Throws if one
 * cannot be read. Watches the files for changes until `undo` is disposed.
 */
export async function openNetworkSource(
  config: Config,
  {
    roles,
    undo,
    warn,
  }: { roles: readonly Role[]; undo: AsyncDisposableStack; warn: (text: string) => void },
): Promise<NetworkSource> {
  if (!(['scoring', 'api', 'gate'] as const).some((role) => roles.includes(role))) return noNetwork
  const { CITY_MMDB: cityPath, ASN_MMDB: asnPath, ANONYMOUS_MMDB: anonymousPath } = config
  const addresses = await followAddresses({ file: addressFileOf(config), warn })
  undo.defer(addresses.stop)
  const lists = await followLists(config.REPUTATION_LISTS, { warn }).catch((cause) => {
    throw new Error(`failed to read a file of REPUTATION_LISTS: ${cause.message}`, { cause })
  })
  undo.defer(lists.stop)
  const paths = { cityPath, asnPath, anonymousPath }
  const current = { addresses: addresses.current, lists: lists.current }
  return openNetwork({ ...paths, ...current }).catch((cause) => {
    throw new Error(`failed to read CITY_MMDB, ASN_MMDB or ANONYMOUS_MMDB: ${cause.message}`, {
      cause,
    })
  })
}

async function followAgents(core: Core, undo: AsyncDisposableStack): Promise<AgentKnowledge> {
  const { findTrusted, domains, stop } = await followTrustedDirectories(core)
  undo.defer(stop)
  const preferred = () => [...catalogueDomains, ...domains()].map(directoryOf)
  const directories = followDirectories({ ...core, preferred })
  undo.defer(directories.stop)
  return { directories, findTrusted }
}

// Limits for reading the file with which a service proves that it controls its domain.
const proofTimeoutMs = 5000
const proofBytes = 16 * 1024

// Maximum wait for a service's response while the person who approved is waiting.
const integratorTimeoutMs = 10_000

/** `publicUrl` must have no path and no trailing slash. */
function gateOptions(
  core: Core,
  { publicUrl, network }: { publicUrl: string; network: NetworkSource },
): GateOptions {
  const { config, keyring } = core
  const { WEBHOOK_TIMEOUT_MS: timeoutMs } = config
  const client = createWebhookClient({
    rules: createAddressRules(config.WEBHOOK_ALLOWED_NETWORKS),
    timeoutMs,
  })
  return {
    ...core,
    publicUrl,
    network,
    leaseMs: config.WEBHOOK_LEASE_MS,
    integratorTimeoutMs: Math.min(integratorTimeoutMs, timeoutMs),
    directCalls: createDirectCalls({ ...core, client, secrets: createSigningSecrets(keyring) }),
    closeWebhookClient: client.close,
    consentKeys: createConsentKeys({ ...core, publicUrl }),
    domainReader: {
      lookUpTxt: (name) => lookUpTxt(name),
      async fileAt(url) {
        const outcome = await client.get({ url, timeoutMs: proofTimeoutMs, maxBytes: proofBytes })
        const isFound = outcome.kind === 'response' && outcome.status === 200
        return isFound ? outcome.body.toString('utf8') : undefined
      },
    },
    signUpOrganization({ startedAt, ...signup }) {
      const decide = core.decideAs(consentingPerson)
      return signUpOrganization({ ...core, decide, idTime: startedAt }, signup)
    },
    eraseSession: (decide, id) => eraseGateSession({ ...core, decide, serverOrganizationId }, id),
    eraseSessions: (decide, sessions) =>
      eraseGateSessions(
        { ...core, decide, serverOrganizationId },
        { sessions, gateAccountId: null },
      ),
    retentionMs: config.GATE_RETENTION_DAYS * 24 * 60 * 60 * 1000,
  }
}
