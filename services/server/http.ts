import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import { projectionLags } from '../../infra/event-store/lag.ts'
import { createApp } from '../../infra/http/app.ts'
import type { ReadinessCheck } from '../../infra/http/health.ts'
import { type AuthCounters, metricsRoutes, type Reading } from '../../infra/http/metrics.ts'
import { allWork, noneHalted, type Running } from './consumers.ts'
import { type Core, projections } from './dependencies.ts'

export interface HttpParts {
  publicUrl: string
  running: Running[]
  /** What workers measure; `/metrics` shows it too. */
  registry: Registry
  isStopping: () => boolean
}

export interface Http {
  app: FastifyInstance
  counters: AuthCounters
}

/** The server without the routes of any service: health, metrics, documentation. */
export async function createHttp(core: Core, parts: HttpParts): Promise<Http> {
  const { publicUrl, running, registry, isStopping } = parts
  const { config, logger, random } = core
  const checks: ReadinessCheck[] = [
    { name: 'database', check: async () => void (await core.pool.query('select 1')) },
    { name: 'log', check: () => core.log.check() },
    { name: 'consumers', check: async () => noneHalted(running) },
    { name: 'workers', check: () => allWork(running) },
  ]
  const app = await createApp({
    logger,
    random,
    publicUrl,
    trustedProxies: config.TRUSTED_PROXIES,
    checks,
    isStopping,
  })
  const counters = metricsRoutes(app, { registry, projectionLags: () => readLags(core) })
  return { app, counters }
}

async function readLags({ log, pool }: Core): Promise<Reading[]> {
  const lags = await projectionLags({ projections, log, pool })
  return lags.map(({ records, ...labels }) => ({ labels, value: records }))
}
