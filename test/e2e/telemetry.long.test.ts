import { hash } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../infra/local/free-port.ts'
import {
  type Cluster,
  clusterLogs,
  createInstallation,
  type Installation,
  startCluster,
} from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { fastWebhooks } from '../support/webhook-world.ts'
import { type OtlpReceiver, type SentSpan, startOtlpReceiver } from './otlp-receiver.ts'

const traceIdOf = (sessionId: string) => hash('sha256', sessionId, 'hex').slice(0, 32)

function simulated(baseUrl: string, publishableKey: string, sessions: number): string[] {
  const target = ['--base-url', baseUrl, '--publishable-key', publishableKey]
  return ['simulate', ...target, '--sessions', String(sessions), '--returning', '0', '--json']
}

/** The spans of a session's trace, each kind once. */
const sessionSpans = [
  'POST /v2/collect/sessions',
  'POST /v2/collect/sessions/:sessionId/documents/:documentId/batches',
  'POST /v2/collect/sessions/:sessionId/documents/:documentId/results',
  'process tidegate.collect.v1 by tidegate-scoring',
  'process tidegate.sessions.v1 by tidegate.projection.answers',
  'process tidegate.sessions.v1 by tidegate.projection.repeats',
  'process tidegate.sessions.v1 by tidegate.projection.sessions',
  'process tidegate.sessions.v1 by tidegate.webhooks.planner',
  'process tidegate.webhooks.v1 by tidegate.projection.webhooks',
  'send tidegate.collect.v1',
  'send tidegate.sessions.v1',
  'send tidegate.visitors.v1',
  'send tidegate.webhooks.v1',
  'webhook attempt',
]

describe.each(clusterLogs())('a server that is told where to send telemetry, on %s', (log) => {
  let cluster: Cluster
  let otlp: OtlpReceiver
  let hooks: WebhookReceiver
  let sessionId: string
  let trace: SentSpan[]
  beforeAll(async () => {
    ;[otlp, hooks] = await Promise.all([startOtlpReceiver(), startWebhookReceiver()])
    const env = {
      ...fastWebhooks,
      OTEL_EXPORTER_OTLP_ENDPOINT: otlp.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=a%20b',
      OTEL_METRICS_EXPORTER: 'otlp',
      OTEL_METRIC_EXPORT_INTERVAL: '100',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    }
    cluster = await startCluster({ log, env })
    await cluster.createEndpoint(hooks.url('/'), ['session.result.persisted'])
    sessionId = await newSession()
    trace = await traceOf(sessionId)
  }, 90_000)
  afterAll(async () => {
    await cluster?.stop()
    await Promise.all([otlp?.close(), hooks?.close()])
  })

  /** Sends a session through the protocol, and returns its id once its webhook arrived. */
  async function newSession(): Promise<string> {
    const before = hooks.requests.length
    const { publishable } = cluster.owner
    const { code, stderr } = await cluster.cli(simulated(cluster.baseUrl, publishable.key, 1))
    expect(code, stderr).toBe(0)
    await hooks.reached(before + 1)
    return JSON.parse(hooks.requests[before]?.body ?? '').data.session.id
  }

  /** Returns the spans of the session's trace, once its last one is there. */
  const traceOf = (id: string): Promise<SentSpan[]> =>
    eventually(() => {
      const { traceId } =
        otlp.spans.find(({ attributes }) => attributes['tidegate.key'] === id) ?? {}
      const spans = otlp.spans.filter((span) => span.traceId === traceId)
      expect([...new Set(spans.map(({ name }) => name))].toSorted()).toEqual(sessionSpans)
      expect(
        spans.map(({ name, attributes }) => `${name} ${attributes['tidegate.event_type']}`),
      ).toContain(
        'process tidegate.webhooks.v1 by tidegate.projection.webhooks WebhookDeliveryAttempted',
      )
      return spans
    })

  it('shows a session in one trace, from its first request to the attempt to tell of it', async () => {
    expect(trace[0]?.traceId).toBe(traceIdOf(sessionId))
    const known = new Set(trace.map(({ spanId }) => spanId))
    const begins = trace.filter(({ parentId }) => !known.has(parentId))
    expect(
      begins.filter(({ name, parentId }) => parentId !== '' || !name.startsWith('POST ')),
    ).toEqual([])
    const attempt = trace.filter(({ name }) => name === 'webhook attempt')
    expect(attempt.map(({ attributes }) => attributes['http.response.status_code'])).toEqual([200])
    const about = otlp.spans.filter(({ attributes }) => attributes['tidegate.key'] === sessionId)
    expect(about.length).toBeGreaterThan(10)
    expect(new Set(about.map(({ traceId }) => traceId))).toEqual(new Set([traceIdOf(sessionId)]))
    const another = await newSession()
    expect((await traceOf(another))[0]?.traceId).toBe(traceIdOf(another))
  }, 60_000)

  it('goes on with the trace that a request names, and tells no receiver of any', async () => {
    const traceId = 'a'.repeat(32)
    await cluster.read(`/v1/sessions/${sessionId}`, {
      method: 'PATCH',
      headers: { traceparent: `00-${traceId}-${'b'.repeat(16)}-01` },
      body: { client_user_id: 'user_1' },
    })
    await eventually(() => {
      const spans = otlp.spans.filter((span) => span.traceId === traceId)
      expect(spans.map(({ name }) => name)).toEqual(
        expect.arrayContaining([
          'PATCH /v1/sessions/:sessionId',
          'send tidegate.sessions.v1',
          'process tidegate.sessions.v1 by tidegate.projection.sessions',
        ]),
      )
    })
    expect(
      hooks.requests.filter(({ headers }) => 'traceparent' in headers || 'tracestate' in headers),
    ).toEqual([])
  })

  it('sends traces only, saying which process sends, with the headers that it was given', () => {
    expect(new Set(otlp.paths)).toEqual(new Set(['/v1/traces']))
    expect(otlp.headers.every((sent) => sent['x-tenant'] === 'a b')).toBe(true)
    expect(trace[0]?.resource).toMatchObject({
      'service.name': 'tidegate',
      'deployment.environment.name': 'test',
      'service.instance.id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
  })

  it('sends no key, no address, nothing that a document is reached by, and no spans of probes', async () => {
    expect(await cluster.readiness()).toBe('200 ok')
    const { secret, publishable } = cluster.owner
    const all = JSON.stringify(otlp.spans)
    for (const text of [secret.key, publishable.key, '127.0.0.1', 'user_1', '/documents/doc'])
      expect(all).not.toContain(text)
    expect(otlp.spans.filter(({ name }) => /probe|readyz|metrics|livez/.test(name))).toEqual([])
  })
})

describe('telemetry', () => {
  let installation: Installation
  beforeAll(async () => {
    installation = await createInstallation()
  })
  afterAll(() => installation?.stop())

  it('loads nothing where nobody asks for it', async () => {
    // Tells of every package of OpenTelemetry that is loaded, by import or require.
    const hook = `import { registerHooks } from 'node:module'
      registerHooks({ load(url, context, next) {
        const name = /node_modules[/](@opentelemetry[/][^/]+)/.exec(url)?.[1]
        if (name) process.stderr.write('loaded ' + name + '\\n')
        return next(url, context)
      } })`
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(hook)}`
    const server = await installation.serve(undefined, { env: { FROM_SOURCE: '1', NODE_OPTIONS } })
    expect(await server.end('SIGTERM')).toBe(0)
    // prom-client asks the interface whether somebody traces.
    expect([...new Set(server.output().match(/^loaded .*$/gm))]).toEqual([
      'loaded @opentelemetry/api',
    ])
  }, 60_000)

  it.each(['refuses', 'never answers'])(
    'that is sent to one who %s harms nothing',
    async (fault) => {
      await using receiver = await silentReceiver(fault === 'never answers')
      const env = {
        LOG_LEVEL: 'info',
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        OTEL_EXPORTER_OTLP_TIMEOUT: '200',
      }
      const server = await installation.serve(undefined, { env })
      const { publishable } = await installation.organization()
      const load = simulated(server.baseUrl, publishable.key, 3)
      expect(await installation.cli(load)).toMatchObject({ code: 0 })
      expect(await server.end('SIGTERM')).toBe(0)
      expect(server.output()).toContain('failed to export OTLP traces; dropping them')
    },
    60_000,
  )
})

/** A port that nobody listens on, or where somebody takes connections and says nothing. */
async function silentReceiver(listens: boolean) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => void sockets.add(socket.on('error', () => {})))
  const port = await freePort()
  if (listens) await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      if (listens) await new Promise((resolve) => server.close(resolve))
    },
  }
}
