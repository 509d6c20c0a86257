import type { FastifyInstance } from 'fastify'
import { sealToken } from '../infra/crypto/sealed-token.ts'
import { createApp } from '../infra/http/app.ts'
import { type Auth, createAuth } from '../infra/http/auth.ts'
import type { ReadinessCheck } from '../infra/http/health.ts'
import { metricsRoutes, type Reading } from '../infra/http/metrics.ts'
import { freePort } from '../infra/local/free-port.ts'
import { projectionLags } from '../projections/lag.ts'
import { findKeyByLookupHash, recipientKeys } from '../projections/organizations/queries.ts'
import { type RunningProjection, runProjection } from '../projections/runner.ts'
import { findDecisions } from '../projections/sessions/queries.ts'
import { createHandOff, type HandOff } from './collect/hand-off.ts'
import { createRecipients, type RecipientTenant } from './collect/recipients.ts'
import { collectRoutes } from './collect/routes.ts'
import { type Core, type CoreOptions, openCore, projections } from './core.ts'
import { readbackRoutes } from './readback/routes.ts'
import { openNetwork } from './scoring/network.ts'
import { runSessionScheduler } from './scoring/scheduler.ts'
import { runScoring } from './scoring/worker.ts'
import { type Demo, webRoutes } from './web/routes.ts'

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
  /** Takes no new request, ends the running ones, then lets go of the log and the database. */
  stop(): Promise<void>
}

interface Running {
  stop(): Promise<void>
}

/** Puts the parts of the chosen roles together and starts them. */
export async function startServer({ roles, prepare, ...options }: ServerOptions): Promise<Server> {
  const core = await openCore(options)
  const { config } = core
  const port = config.PORT || (await freePort())
  const publicUrl = config.PUBLIC_URL ?? `http://${config.HOST}:${port}`
  const running = roles.includes('projections') ? await startProjections(core) : []
  const workers = [...running, ...(roles.includes('scoring') ? await startScoring(core) : [])]
  const demo = await prepare?.(core, publicUrl)
  const app = await createHttp(core, { publicUrl, running })
  const handOff = await addRoutes(app, { core, roles, demo })
  await app.listen({ port, host: config.HOST })
  return {
    url: publicUrl,
    async stop() {
      await app.close()
      handOff?.close()
      // Scoring before the projections, so that what it decided last is still applied.
      for (const worker of workers.reverse()) await worker.stop()
      await core.close()
    },
  }
}

function startProjections(core: Core): Promise<RunningProjection[]> {
  return Promise.all(projections.map((projection) => runProjection({ ...core, projection })))
}

async function startScoring(core: Core): Promise<Running[]> {
  const { CITY_MMDB: cityPath, ASN_MMDB: asnPath, ANONYMOUS_MMDB: anonymousPath } = core.config
  const network = await openNetwork({ cityPath, asnPath, anonymousPath })
  return [await runScoring({ ...core, network }), await runSessionScheduler(core)]
}

interface HttpParts {
  publicUrl: string
  running: RunningProjection[]
}

async function createHttp({ config, logger, random, ...core }: Core, { publicUrl, running }: HttpParts) {
  const checks: ReadinessCheck[] = [
    { name: 'database', check: async () => void (await core.pool.query('select 1')) },
    { name: 'log', check: () => core.log.check() },
    { name: 'projections', check: async () => noneHalted(running) },
  ]
  const app = await createApp({
    logger,
    random,
    publicUrl,
    trustedProxies: config.TRUSTED_PROXIES,
    checks,
  })
  metricsRoutes(app, { projectionLags: () => readLags(core) })
  return app
}

async function readLags({ log, pool }: Pick<Core, 'log' | 'pool'>): Promise<Reading[]> {
  const lags = await projectionLags({ projections, log, pool })
  return lags.map(({ records, ...labels }) => ({ labels, value: records }))
}

function noneHalted(running: RunningProjection[]): void {
  const halted = running.flatMap((projection) => projection.status()).find((partition) => partition.halted)
  if (halted)
    throw new Error(`${halted.topic}/${halted.partition} stands still at offset ${halted.nextOffset}`)
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
    readbackRoutes(app, { ...core, auth })
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
    sealResult: handOff.sealResult,
    batchIntervalMs: config.BATCH_INTERVAL_MS,
  })
  return handOff
}
