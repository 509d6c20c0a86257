import fastify from 'fastify'
import { expect, test } from 'vitest'
import { metricsRoutes } from '../../../infra/http/metrics.ts'
import { createTestApp } from './test-app.ts'

test('metrics count requests by route pattern and show projection lag', async () => {
  const app = await createTestApp()
  const labels = { projection: 'sessions', topic: 'tidegate.sessions.v1', partition: 3 }
  const counters = metricsRoutes(app, { projectionLags: async () => [{ labels, value: 17 }] })
  counters.onRateLimited('secret')
  counters.onKeyLookup('unknown')
  counters.onKeyLookup('unknown')
  app.get('/things/:id', async () => ({}))
  for (const id of ['a', 'b']) await app.inject({ url: `/things/${id}` })
  await app.inject({ url: '/nothing-here' })

  const { statusCode, headers, body } = await app.inject({ url: '/metrics' })

  expect(statusCode).toBe(200)
  expect(headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/)
  expect(body).toContain(
    'http_server_request_duration_seconds_count{http_request_method="GET",http_route="/things/:id",http_response_status_code="200"} 2',
  )
  expect(body).not.toContain('nothing-here')
  expect(body).toContain(
    'tidegate_projection_lag_records{projection="sessions",topic="tidegate.sessions.v1",partition="3"} 17',
  )
  expect(body).toContain('tidegate_rate_limited_total{key_type="secret"} 1')
  expect(body).toContain('tidegate_key_lookups_total{outcome="unknown"} 2')
  expect(body).toContain('process_cpu_seconds_total')
})

test('metrics are computed once for all scrapes within a second', async () => {
  const app = await createTestApp()
  let reads = 0
  const projectionLags = async () => {
    reads++
    return []
  }
  metricsRoutes(app, { projectionLags })
  const responses = await Promise.all(Array.from({ length: 20 }, () => app.inject('/metrics')))
  expect(new Set(responses.map(({ body }) => body)).size).toBe(1)
  expect(reads).toBe(1)
})

test('metrics on a separate port are not on the port of the API', async () => {
  const [app, metricsApp] = [await createTestApp(), fastify()]
  metricsRoutes(app, { projectionLags: async () => [], metricsApp })
  expect((await app.inject('/metrics')).json().error.code).toBe('request.not_found')
  expect((await metricsApp.inject('/metrics')).body).toContain('process_cpu_seconds_total')
  expect(app.swagger().paths).not.toHaveProperty('/metrics')
})
