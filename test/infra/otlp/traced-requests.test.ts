import { AsyncLocalStorage } from 'node:async_hooks'
import { InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace'
import fastify, { type FastifyInstance } from 'fastify'
import { afterEach, expect, it } from 'vitest'
import { createSpans, sessionTraceId } from '../../../infra/otlp/spans.ts'
import { type RequestTrace, traceRequests } from '../../../infra/otlp/traced-requests.ts'
import { eventually } from '../../support/eventually.ts'

const given = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
let app: FastifyInstance
afterEach(() => app.close())

async function listen({ acceptsParents = true } = {}) {
  const exporter = new InMemorySpanExporter()
  const spans = createSpans({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })
  const requests = new AsyncLocalStorage<RequestTrace | undefined>()
  app = fastify({ forceCloseConnections: true })
  traceRequests(app, { spans, requests, acceptsParents })
  app.post('/about/:id', async () => {
    // Reads the trace as a later append does.
    await new Promise(setImmediate)
    return { traceparent: requests.getStore()?.traceparent('sid_1') ?? null }
  })
  app.get('/probe', { config: { probe: true } }, async () => ({}))
  app.options('/about/:id', async () => ({}))
  const { promise, resolve: endSlow } = Promise.withResolvers<object>()
  app.get('/slow', () => promise)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const ended = () => exporter.getFinishedSpans()
  const post = (headers: Record<string, string> = {}) => {
    const json = { 'content-type': 'application/json', ...headers }
    return fetch(`${url}/about/5?token=x`, { method: 'POST', body: '{"a":1}', headers: json })
  }
  const traceOf = async (headers?: Record<string, string>) => {
    const { traceparent }: { traceparent: string } = JSON.parse(await (await post(headers)).text())
    return traceparent.split('-')[1]
  }
  return { url, traceOf, ended, endSlow }
}

it('a request joins the trace of its session, even after its body was parsed', async () => {
  const { traceOf, ended } = await listen()
  expect(await traceOf()).toBe(sessionTraceId('sid_1'))
  await eventually(() => expect(ended()).toHaveLength(1))
  expect(ended()[0]).toMatchObject({
    name: 'POST /about/:id',
    attributes: { 'http.route': '/about/:id', 'http.response.status_code': 200 },
  })
  expect(JSON.stringify(ended().map(({ attributes }) => attributes))).not.toContain('token')
})

it('a request continues the trace in its header, unless that is disabled', async () => {
  const enabled = await listen()
  expect(await enabled.traceOf({ traceparent: given })).toBe('a'.repeat(32))
  expect(await enabled.traceOf({ traceparent: '00-0' })).toBe(sessionTraceId('sid_1'))
  await app.close()
  const disabled = await listen({ acceptsParents: false })
  expect(await disabled.traceOf({ traceparent: given })).toBe(sessionTraceId('sid_1'))
})

it('probes and preflights have no span, but a request whose client disconnected does', async () => {
  const { url, ended, endSlow } = await listen()
  expect((await fetch(`${url}/probe`)).status).toBe(200)
  expect((await fetch(`${url}/about/5`, { method: 'OPTIONS' })).status).toBe(200)
  expect((await fetch(`${url}/nothing`)).status).toBe(404)
  await expect(fetch(`${url}/slow`, { signal: AbortSignal.timeout(100) })).rejects.toThrow()
  await eventually(() => expect(ended()).toHaveLength(2))
  expect(ended().map(({ name, attributes }) => [name, attributes['error.type']])).toEqual([
    ['GET unknown', undefined],
    ['GET /slow', 'client_gone'],
  ])
  endSlow({})
})
