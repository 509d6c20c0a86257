import { hash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import type { SentSpan } from '../support/otlp-receiver.ts'
import { openTracedWorld, type TracedWorld, traceOf } from '../support/traced-session.ts'

describe('a server that is told where to send telemetry', () => {
  let traced: TracedWorld
  let sessionId: string
  let trace: SentSpan[]
  beforeAll(async () => {
    traced = await openTracedWorld('postgres')
    sessionId = await traced.session()
    trace = await traceOf(traced, sessionId)
  }, 90_000)
  afterAll(() => traced?.[Symbol.asyncDispose]())

  it('shows a session in one trace, from its first request to the attempt to tell of it', () => {
    expect(trace[0]?.traceId).toBe(hash('sha256', sessionId, 'hex').slice(0, 32))
    const known = new Set(trace.map(({ spanId }) => spanId))
    const begins = trace.filter(({ parentId }) => !known.has(parentId))
    expect(
      begins.filter(({ name, parentId }) => parentId !== '' || !name.startsWith('POST ')),
    ).toEqual([])
    const attempt = trace.filter(({ name }) => name === 'webhook attempt')
    expect(attempt.map(({ attributes }) => attributes['http.response.status_code'])).toEqual([200])
    const about = trace.filter(({ attributes }) => attributes['tidegate.key'] !== undefined)
    const other = traced.otlp.spans.filter(
      ({ traceId, attributes }) =>
        traceId !== trace[0]?.traceId && attributes['tidegate.key'] === sessionId,
    )
    expect(about.length).toBeGreaterThan(10)
    expect(other).toEqual([])
  })

  it('goes on with the trace that a request names, and tells no receiver of any', async () => {
    const traceId = 'a'.repeat(32)
    const { key } = traced.world.tenant
    const headers = {
      authorization: `Bearer ${key}`,
      traceparent: `00-${traceId}-${'b'.repeat(16)}-01`,
    }
    const path = `/v1/sessions/${sessionId}`
    const body = JSON.stringify({ client_user_id: 'user_1' })
    const changing = { ...headers, 'content-type': 'application/json' }
    const changed = await traced.world.cluster.fetch(0, path, {
      method: 'PATCH',
      headers: changing,
      body,
    })
    expect(changed.status).toBe(200)
    const names = await eventually(() => {
      const found = traced.otlp.spans
        .filter((span) => span.traceId === traceId)
        .map(({ name }) => name)
      expect(found).toContain('PATCH /v1/sessions/:sessionId')
      expect(found).toContain('process tidegate.sessions.v1 by tidegate.projection.sessions')
      return found
    })
    expect(names).toContain('send tidegate.sessions.v1')
    expect(
      traced.webhookHeaders().filter((sent) => 'traceparent' in sent || 'tracestate' in sent),
    ).toEqual([])
  })

  it('sends traces only, whatever the environment says of metrics', () => {
    expect(new Set(traced.otlp.paths)).toEqual(new Set(['/v1/traces']))
  })

  it('says which process sends, with the headers that it was given', () => {
    expect(traced.otlp.headers.every((sent) => sent['x-tenant'] === 'a b')).toBe(true)
    expect(trace[0]?.resource).toMatchObject({
      'service.name': 'tidegate',
      'deployment.environment.name': 'test',
      'service.instance.id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
  })

  it('sends no key, no address, nothing that a document is reached by, and no spans of probes', async () => {
    expect((await traced.world.cluster.fetch(0, '/readyz')).status).toBe(200)
    const { owner } = traced.world.tenant
    const all = JSON.stringify(traced.otlp.spans)
    for (const text of [
      owner.secret.key,
      owner.publishable.key,
      '127.0.0.1',
      'user_1',
      '/documents/doc',
    ])
      expect(all).not.toContain(text)
    expect(traced.otlp.spans.filter(({ name }) => /probe|readyz|metrics|livez/.test(name))).toEqual(
      [],
    )
  })
})
