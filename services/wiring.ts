import type { FastifyInstance } from 'fastify'
import type { Config } from '../infra/config.ts'
import { sealToken } from '../infra/crypto/sealed-token.ts'
import { createApp } from '../infra/http/app.ts'
import { type Auth, createAuth } from '../infra/http/auth.ts'
import { drain } from '../infra/http/drain.ts'
import type { ReadinessCheck } from '../infra/http/health.ts'
import { holdPort, listenOnHeld } from '../infra/http/hold-port.ts'
import { metricsRoutes, type Reading } from '../infra/http/metrics.ts'
import { within } from '../infra/within.ts'
import { projectionLags } from '../projections/lag.ts'
import { findKeyByLookupHash, recipientKeys } from '../projections/organizations/queries.ts'
import { findDecisions } from '../projections/sessions/queries.ts'
import { createHandOff, type HandOff } from './collect/hand-off.ts'
import { createRecipients, type RecipientTenant } from './collect/recipients.ts'
import { collectRoutes } from './collect/routes.ts'
import { type Core, type CoreOptions, openCore, projections } from './core.ts'
import { readbackRoutes } from './readback/routes.ts'
import { type Demo, webRoutes } from './web/routes.ts'
import { noneHalted, type Running, startWorkers } from './workers.ts'

export const allRoles = ['collect', 'scoring', 'projections', 'api'] as const
export type Role = (typeof allRoles)[number]

/** Throws for a name that is not a role. */
export function parseRoles(text: string): Role[] {
  return text.split(',').map((name) => {
    const role = allRoles.find((known) => known === name.trim())
    if (!role) throw new Error(`--roles: ${name} is not one of ${allRoles.join(', ')}`)
    return role
  })
}

export interface ServerOptions extends CoreOptions {
  roles: readonly Role[]
  /** Runs once the read models follow the log and before requests are taken; what it returns is shown at /demo. */
  prepare?: (core: Core, publicUrl: string) => Promise<Demo>
}

export interface Server {
  /** Where clients reach it. */
  url: string
  /** Drains and ends serving, then lets go of the log and the database. Rejects when something does not let go. */
  stop(): Promise<void>
}

const closeMs = 5000
const letGoMs = 3000

/** Milliseconds after which a stop counts as hanging: a drain, the last requests, then everything behind them. */
export const stopWithinMs = ({ DRAIN_MS }: Config): number => DRAIN_MS + closeMs + letGoMs + 500

/**
 * Puts the parts of the chosen roles together and starts them. When that fails, what had started is stopped and
 * the process is in no consumer group any more.
 */
export async function startServer({ roles, prepare, ...options }: ServerOptions): Promise<Server> {
  const { config, logger } = options
  const undo = new AsyncDisposableStack()
  const letGo = () => within(undo.disposeAsync(), letGoMs)
  let stopping = false
  try {
    const held = await holdPort({ port: config.PORT, host: config.HOST })
    undo.defer(held.release)
    const publicUrl = config.PUBLIC_URL ?? `http://${config.HOST}:${held.port}`
    const core = await openCore(options)
    undo.defer(core.close)
    const starts = { projections: roles.includes('projections'), scoring: roles.includes('scoring') }
    const running = await startWorkers(core, { starts, undo })
    const demo = await prepare?.(core, publicUrl)
    const app = await createHttp(core, { publicUrl, running, isStopping: () => stopping })
    const handOff = await addRoutes(app, { core, roles, demo })
    undo.defer(() => handOff?.close())
    undo.defer(() => app.close())
    await held.release()
    await listenOnHeld(app, { port: held.port, host: config.HOST })
    const stop = async () => {
      stopping = true
      await drain(app, { drainMs: config.DRAIN_MS, closeMs })
      await letGo()
    }
    return { url: publicUrl, stop }
  } catch (error) {
    await letGo().catch((err) => logger.warn({ err }, 'the failed start was not undone in full'))
    throw error
  }
}

interface HttpParts {
  publicUrl: string
  running: Running[]
  isStopping: () => boolean
}

async function createHttp({ config, logger, random, ...core }: Core, parts: HttpParts) {
  const { publicUrl, running, isStopping } = parts
  const checks: ReadinessCheck[] = [
    { name: 'database', check: async () => void (await core.pool.query('select 1')) },
    { name: 'log', check: () => core.log.check() },
    { name: 'consumers', check: async () => noneHalted(running) },
  ]
  const app = await createApp({
    logger,
    random,
    publicUrl,
    trustedProxies: config.TRUSTED_PROXIES,
    checks,
    isStopping,
  })
  metricsRoutes(app, { projectionLags: () => readLags(core) })
  return app
}

async function readLags({ log, pool }: Pick<Core, 'log' | 'pool'>): Promise<Reading[]> {
  const lags = await projectionLags({ projections, log, pool })
  return lags.map(({ records, ...labels }) => ({ labels, value: records }))
}

interface RouteParts {
  core: Core
  roles: readonly Role[]
  demo: Demo | undefined
}

async function addRoutes(
  app: FastifyInstance,
  { core, roles, demo }: RouteParts,
): Promise<HandOff | undefined> {
  const { pool, keyring, clock, random } = core
  const auth = createAuth({ findKey: (hashes) => findKeyByLookupHash(pool, hashes), keyring, clock })
  if (roles.includes('api')) {
    readbackRoutes(app, { ...core, pool: core.readPool, auth })
    await webRoutes(app, { random, demo })
  }
  return roles.includes('collect') ? addCollect(app, core, auth) : undefined
}

function addCollect(app: FastifyInstance, core: Core, auth: Auth): HandOff {
  const { pool, keyring, random, applied, config } = core
  const findKeys = ({ organizationId, environment }: RecipientTenant) =>
    recipientKeys(pool, organizationId, environment)
  const handOff = createHandOff({
    findDecisions: (ids) => findDecisions(pool, ids),
    onAdvance: (listener) => applied.onAdvance('sessions', listener),
    recipientHashes: createRecipients({ findKeys, keyring, clock: core.clock }),
    seal: (sealing) => sealToken({ ...sealing, random }),
  })
  collectRoutes(app, {
    ...core,
    auth,
    checkRecipients: handOff.checkRecipients,
    sealResult: handOff.sealResult,
    batchIntervalMs: config.BATCH_INTERVAL_MS,
  })
  return handOff
}
