import { expect } from 'vitest'
import type { ClusterOptions } from './cluster.ts'
import { eventually } from './eventually.ts'
import { type OtlpReceiver, type SentSpan, startOtlpReceiver } from './otlp-receiver.ts'
import { startWebhookReceiver } from './webhook-receiver.ts'
import { openWebhookWorld, type WebhookWorld } from './webhook-world.ts'

export interface TracedWorld extends AsyncDisposable {
  world: WebhookWorld
  otlp: OtlpReceiver
  /** Sends a session through the protocol, and returns its id once its webhook arrived. */
  session(): Promise<string>
  /** The headers of the webhooks that arrived. */
  webhookHeaders(): Record<string, unknown>[]
}

/** A server with all roles that sends its telemetry to a receiver, and a webhook endpoint for results. */
export async function openTracedWorld(log: ClusterOptions['log']): Promise<TracedWorld> {
  await using undo = new AsyncDisposableStack()
  const otlp = await startOtlpReceiver()
  undo.defer(() => otlp.close())
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: otlp.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=a%20b',
    OTEL_METRICS_EXPORTER: 'otlp',
    OTEL_METRIC_EXPORT_INTERVAL: '100',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
  }
  const world = await openWebhookWorld({
    log,
    env,
    roles: 'collect,scoring,projections,api,gate,webhooks',
  })
  undo.defer(() => world.close())
  const hooks = await startWebhookReceiver()
  undo.defer(() => hooks.close())
  await world.createEndpoint(world.tenant, {
    url: hooks.url('/'),
    types: ['session.result.persisted'],
  })
  const { owner } = world.tenant
  const target = [
    '--base-url',
    world.cluster.baseUrls[0] ?? '',
    '--publishable-key',
    owner.publishable.key,
  ]
  const opened = undo.move()
  return {
    world,
    otlp,
    async session() {
      const before = hooks.requests.length
      const args = ['simulate', ...target, '--sessions', '1', '--returning', '0', '--json']
      const { code, stdout, stderr } = await world.cluster.cli(args)
      if (code !== 0) throw new Error(`simulate ended with ${code}: ${stdout}${stderr}`)
      await hooks.reached(before + 1)
      const { data }: { data: { session: { id: string } } } = JSON.parse(
        hooks.requests[before]?.body ?? '',
      )
      return data.session.id
    },
    webhookHeaders: () => hooks.requests.map(({ headers }) => headers),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** What a session's trace shows, however many requests and decisions it had. */
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

/** The spans of the session's trace, once its last one is there. */
export function traceOf({ otlp }: TracedWorld, sessionId: string): Promise<SentSpan[]> {
  return eventually(() => {
    const { traceId } =
      otlp.spans.find(({ attributes }) => attributes['tidegate.key'] === sessionId) ?? {}
    const trace = otlp.spans.filter((span) => span.traceId === traceId)
    expect([...new Set(trace.map(({ name }) => name))].toSorted()).toEqual(sessionSpans)
    const events = trace.map(
      ({ name, attributes }) => `${name} ${attributes['tidegate.event_type']}`,
    )
    expect(events).toContain(
      'process tidegate.webhooks.v1 by tidegate.projection.webhooks WebhookDeliveryAttempted',
    )
    return trace
  })
}
