import type { FastifyInstance } from 'fastify'
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { z } from 'zod'
import type { LookupOutcome } from '../access/key-cache.ts'
import type { Principal } from '../access/principal.ts'
import { createCounter } from '../counter.ts'
import { cachedFor } from '../timing.ts'

export interface Reading {
  labels: Record<string, string | number>
  value: number
}

export interface MetricsOptions {
  registry?: Registry
  /** Returns the records not yet applied, by projection, topic and partition. Called for each scrape. */
  projectionLags: () => Promise<Reading[]>
  /** The app that serves `GET /metrics`. Default: `app` itself. */
  metricsApp?: FastifyInstance | undefined
}

// Scrapes within this time get the same text, because creating it queries the log and the database.
const cacheMs = 1000

// OpenTelemetry's HTTP semantic conventions: name, attributes and bucket bounds, in seconds.
const durationBuckets = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

const metricsSchema = {
  operationId: 'getMetrics',
  tags: ['Operations'],
  summary: 'Get Prometheus metrics',
  response: { 200: { content: { 'text/plain': { schema: z.string() } } } },
}

const callerTypes: Principal['type'][] = ['publishable', 'secret', 'person']
const lookupOutcomes: LookupOutcome[] = ['found', 'unknown', 'refused']

export interface AuthCounters {
  onRateLimited: (callerType: Principal['type']) => void
  onKeyLookup: (outcome: LookupOutcome) => void
}

/**
 * Adds `GET /metrics` in the Prometheus text format, computed at most once a second. Call before adding routes, so that
 * their requests are measured.
 */
export function metricsRoutes(app: FastifyInstance, options: MetricsOptions): AuthCounters {
  const { projectionLags, registry = new Registry(), metricsApp = app } = options
  collectDefaultMetrics({ register: registry })
  measureRequests(app, registry)
  measureLag(registry, projectionLags)
  const text = cachedFor(cacheMs, () => registry.metrics())
  // Metrics on a separate port are not part of the OpenAPI document.
  const described = metricsApp === app && { schema: metricsSchema }
  metricsApp.get('/metrics', { ...described, config: { probe: true } }, async (_request, reply) =>
    reply.header('content-type', registry.contentType).send(await text()),
  )
  return createAuthCounters(registry)
}

function createAuthCounters(registry: Registry): AuthCounters {
  const limited = createCounter(registry, {
    name: 'tidegate_rate_limited_total',
    help: 'Requests rejected by a rate limit: of the organization and key type, of the console session, or of the source address.',
    labels: { key_type: callerTypes },
  })
  const lookups = createCounter(registry, {
    name: 'tidegate_key_lookups_total',
    help: 'API key lookups in the database by outcome: found, unknown, or rejected because the source sent too many.',
    labels: { outcome: lookupOutcomes },
  })
  return {
    onRateLimited: (keyType) => limited.inc({ key_type: keyType }),
    onKeyLookup: (outcome) => lookups.inc({ outcome }),
  }
}

function measureRequests(app: FastifyInstance, registry: Registry): void {
  const durations = new Histogram({
    name: 'http_server_request_duration_seconds',
    help: 'Duration of HTTP requests, from request to end of response.',
    labelNames: ['http_request_method', 'http_route', 'http_response_status_code'],
    buckets: durationBuckets,
    registers: [registry],
  })
  app.addHook('onResponse', (request, reply, done) => {
    // Uses the route pattern, not the URL: a label value per session would exhaust the scraper's memory.
    const route = request.routeOptions.url ?? 'unknown'
    durations
      .labels(request.method, route, String(reply.statusCode))
      .observe(reply.elapsedTime / 1000)
    done()
  })
}

function measureLag(registry: Registry, readings: MetricsOptions['projectionLags']): void {
  new Gauge({
    name: 'tidegate_projection_lag_records',
    help: 'Records on the log that the read model has not applied yet.',
    labelNames: ['projection', 'topic', 'partition'],
    registers: [registry],
    async collect() {
      this.reset()
      for (const { labels, value } of await readings()) this.set(labels, value)
    },
  })
}
