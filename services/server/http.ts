import type { FastifyInstance } from 'fastify'
import ipaddr from 'ipaddr.js'
import type { Config } from '../../infra/config.ts'
import { createApp } from '../../infra/http/app.ts'
import { type AuthCounters, metricsRoutes, type Reading } from '../../infra/http/metrics.ts'
import { type Core, projections } from './dependencies.ts'
import { createLags, type Lags, measureLags } from './lags.ts'
import { type ReadinessParts, readinessChecks } from './readiness.ts'

interface HttpParts extends ReadinessParts {
  publicUrl: string
  isStopping: () => boolean
  /** Answers `/metrics`, where that has a port of its own. */
  metrics?: FastifyInstance | undefined
}

export async function createHttp(
  core: Core,
  parts: HttpParts,
): Promise<{ app: FastifyInstance; counters: AuthCounters }> {
  const { publicUrl, registry, isStopping, metrics } = parts
  const checks = readinessChecks(core, parts)
  const app = await createApp({ ...edgeOf(core), publicUrl, checks, isStopping })
  core.tracing?.requests(app)
  const lags = createLags(core)
  const counters = metricsRoutes(app, {
    registry,
    projectionLags: () => ofProjections(lags),
    on: metrics,
  })
  measureLags(lags, registry)
  return { app, counters }
}

const edgeOf = ({ config, logger, random }: Core) => ({
  logger,
  random,
  trustedProxies: config.TRUSTED_PROXIES,
  edgeHeaders: config.EDGE_HEADERS,
})

/** What serves the console: `app`, with CONSOLE_PORT one of its `own`, and nothing with CONSOLE=off. */
export async function createConsoleApp(
  core: Core,
  { app, ...parts }: Pick<HttpParts, 'publicUrl' | 'isStopping'> & { app: FastifyInstance },
): Promise<{ app?: FastifyInstance; own?: FastifyInstance }> {
  const { CONSOLE, CONSOLE_PORT } = core.config
  if (CONSOLE === 'off') return {}
  if (CONSOLE_PORT === undefined) return { app }
  const own = await createApp({ ...edgeOf(core), ...parts })
  return { app: own, own }
}

const names = new Set(projections.map(({ name }) => name))

async function ofProjections(lags: Lags): Promise<Reading[]> {
  const found = (await lags()).filter(({ labels }) => names.has(labels.group))
  return found.map(({ labels: { group: projection, ...place }, records }) => ({
    labels: { projection, ...place },
    value: records,
  }))
}

type Address = Pick<Config, 'HOST'> & Partial<Pick<Config, 'PUBLIC_URL' | 'CONSOLE_PORT'>>

/**
 * PUBLIC_URL, else the address listened on, as browsers write it. Where that is every address, this machine's own.
 * Throws for a HOST that no URL can name.
 */
export function publicUrlOf({ HOST, PUBLIC_URL }: Address, port: number): string {
  if (PUBLIC_URL !== undefined) return PUBLIC_URL
  const host = listensEverywhere(HOST) ? '127.0.0.1' : HOST
  const url = `http://${ipaddr.IPv6.isValid(host) ? `[${host}]` : host}:${port}`
  if (URL.canParse(url)) return new URL(url).origin
  throw new Error(
    `PUBLIC_URL is not set, and HOST ${HOST} cannot be part of an address that browsers use.`,
  )
}

/** Where people open the console: on this machine where it has a port of its own, as nobody outside should reach that. */
export function consoleUrlOf({ HOST, CONSOLE_PORT }: Address, publicUrl: string): string {
  return CONSOLE_PORT === undefined ? publicUrl : publicUrlOf({ HOST }, CONSOLE_PORT)
}

/**
 * Whether Gate's consent pages can be opened from another machine. They work at one address only, because the links to
 * them, their key and their proofs name it.
 */
export function hasConsentAddress({ HOST, PUBLIC_URL }: Address): boolean {
  if (PUBLIC_URL === undefined) return !listensEverywhere(HOST)
  // Everything that the pages load is at the root.
  return new URL(PUBLIC_URL).pathname === '/'
}

function listensEverywhere(host: string): boolean {
  // Node listens on all addresses where none is named.
  if (host === '') return true
  return ipaddr.isValid(host) && ipaddr.process(host).range() === 'unspecified'
}
