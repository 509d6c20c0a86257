import type { FastifyInstance } from 'fastify'
import ipaddr from 'ipaddr.js'
import type { Config } from '../../infra/config.ts'
import { createApp } from '../../infra/http/app.ts'
import { type AuthCounters, metricsRoutes, type Reading } from '../../infra/http/metrics.ts'
import { type Core, projections } from './dependencies.ts'
import { createLagReader, type LagReader, registerLagGauges } from './lags.ts'
import { type ReadinessParts, readinessChecks } from './readiness.ts'

interface HttpParts extends ReadinessParts {
  publicUrl: string
  isStopping: () => boolean
  /** Serves `/metrics` if METRICS_PORT is set. */
  metrics?: FastifyInstance | undefined
}

export async function createHttp(
  core: Core,
  parts: HttpParts,
): Promise<{ app: FastifyInstance; counters: AuthCounters }> {
  const { publicUrl, registry, isStopping, metrics } = parts
  const checks = readinessChecks(core, parts)
  const app = await createApp({ ...edgeOptions(core), publicUrl, checks, isStopping })
  core.tracing?.traceRequests(app)
  const lags = createLagReader(core)
  const counters = metricsRoutes(app, {
    registry,
    projectionLags: () => projectionReadings(lags),
    metricsApp: metrics,
  })
  registerLagGauges(lags, registry)
  return { app, counters }
}

const edgeOptions = ({ config, logger, random }: Core) => ({
  logger,
  random,
  trustedProxies: config.TRUSTED_PROXIES,
  edgeHeaders: config.EDGE_HEADERS,
})

/**
 * Returns the app that serves the console: the main app, a separate one with CONSOLE_PORT, or none with CONSOLE=off.
 */
export async function createConsoleApp(
  core: Core,
  { app, ...parts }: Pick<HttpParts, 'publicUrl' | 'isStopping'> & { app: FastifyInstance },
): Promise<{ app?: FastifyInstance; separateApp?: FastifyInstance }> {
  const { CONSOLE, CONSOLE_PORT } = core.config
  if (CONSOLE === 'off') return {}
  if (CONSOLE_PORT === undefined) return { app }
  const separateApp = await createApp({ ...edgeOptions(core), ...parts })
  return { app: separateApp, separateApp }
}

const projectionNames = new Set(projections.map(({ name }) => name))

async function projectionReadings(lags: LagReader): Promise<Reading[]> {
  const projectionLags = (await lags()).filter(({ labels }) => projectionNames.has(labels.group))
  return projectionLags.map(({ labels: { group: projection, ...place }, records }) => ({
    labels: { projection, ...place },
    value: records,
  }))
}

type Address = Pick<Config, 'HOST'> & Partial<Pick<Config, 'PUBLIC_URL' | 'CONSOLE_PORT'>>

/**
 * Returns PUBLIC_URL, or else the URL of the listening address, with 127.0.0.1 if that is all addresses. Throws for a
 * HOST that cannot be part of a URL.
 */
export function publicUrlOf({ HOST, PUBLIC_URL }: Address, port: number): string {
  if (PUBLIC_URL !== undefined) return PUBLIC_URL
  const host = listensEverywhere(HOST) ? '127.0.0.1' : HOST
  const url = `http://${ipaddr.IPv6.isValid(host) ? `[${host}]` : host}:${port}`
  if (URL.canParse(url)) return new URL(url).origin
  throw new Error(
    `PUBLIC_URL is not set, and browsers cannot use HOST ${HOST} as an address: set PUBLIC_URL.`,
  )
}

/**
 * Returns the URL of the console. With CONSOLE_PORT, uses the listening address instead of PUBLIC_URL, because the port
 * should not be reachable from outside.
 */
export function consoleUrlOf({ HOST, CONSOLE_PORT }: Address, publicUrl: string): string {
  return CONSOLE_PORT === undefined ? publicUrl : publicUrlOf({ HOST }, CONSOLE_PORT)
}

/**
 * Returns true if other machines can open Gate's consent pages. The pages work only at the public URL, because their
 * links, keys and proofs contain it.
 */
export function hasConsentAddress({ HOST, PUBLIC_URL }: Address): boolean {
  if (PUBLIC_URL === undefined) return !listensEverywhere(HOST)
  // The pages load their files from the root.
  return new URL(PUBLIC_URL).pathname === '/'
}

function listensEverywhere(host: string): boolean {
  // Node listens on all addresses if the host is empty.
  if (host === '') return true
  return ipaddr.isValid(host) && ipaddr.process(host).range() === 'unspecified'
}
