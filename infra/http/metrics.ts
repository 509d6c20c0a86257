import type { FastifyInstance } from 'fastify'
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { z } from 'zod'
import type { LookupOutcome } from '../access/key-cache.ts'
import type { Principal } from '../access/principal.ts'
import { createCounter } from '../counter.ts'
import { seldom } from '../timing.ts'

export interface Reading {
  labels: Record<string, string | number>
  value: number
}

export interface MetricsOptions {
  registry?: Registry
  /** Records not yet applied, by projection, topic and partition. Read at each scrape. */
  projectionLags: () => Promise<Reading[]>
  /** Where `GET /metrics` is answered, unless that is the app itself. */
  on?: FastifyInstance | undefined
}

// All who ask within it get the same text: to make it asks the log and the database how far everything is.
const freshMs = 1000

// OpenTelemetry's HTTP semantic conventions: name, attributes and bucket bounds, in seconds.
const durationBuckets = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

const metricsSchema = {
  operationId: 'getMetrics',
  tags: ['Operations'],
  summary: 'Measurements in the Prometheus text format',
  response: { 200: { content: { 'text/plain': { schema: z.string() } } } },
}

const callerTypes: Principal['type'][] = ['publishable', 'secret', 'person']
const lookupOutcomes: LookupOutcome[] = ['found', 'unknown', 'refused']

export interface AuthCounters {
  onRateLimited: (callerType: Principal['type']) => void
  onKeyLookup: (outcome: LookupOutcome) => void
}

/**
 * `GET /metrics` in the Prometheus text format, made once a second at most. Call before routes are added, so that their
 * requests are measured.
 */
export function metricsRoutes(app: FastifyInstance, options: MetricsOptions): AuthCounters {
  const { projectionLags, registry = new Registry(), on = app } = options
  collectDefaultMetrics({ register: registry })
  measureRequests(app, registry)
  measureLag(registry, projectionLags)
  const text = seldom(freshMs, () => registry.metrics())
  // A port of its own is no part of the interface that is described.
  const described = on === app && { schema: metricsSchema }
  on.get('/metrics', { ...described, config: { probe: true } }, async (_request, reply) =>
    reply.header('content-type', registry.contentType).send(await text()),
  )
  return countAuth(registry)
}

function countAuth(registry: Registry): AuthCounters {
  const limited = createCounter(registry, {
    name: 'tidegate_rate_limited_total',
    help: 'Requests refused because the bucket of their organization and key type, of their console session, or of their source, was empty.',
    labels: { key_type: callerTypes },
  })
  const lookups = createCounter(registry, {
    name: 'tidegate_key_lookups_total',
    help: 'API keys looked up in the database: found, unknown, or refused because their source asked too often.',
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
    help: 'Time from the request to the end of its answer.',
    labelNames: ['http_request_method', 'http_route', 'http_response_status_code'],
    buckets: durationBuckets,
    registers: [registry],
  })
  app.addHook('onResponse', (request, reply, done) => {
    // The pattern and never the URL: a label for each session would fill the memory of whoever scrapes.
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
    help: 'Records appended and not yet applied by the read model.',
    labelNames: ['projection', 'topic', 'partition'],
    registers: [registry],
    async collect() {
      this.reset()
      for (const { labels, value } of await readings()) this.set(labels, value)
    },
  })
}
