import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { registryProducer } from '../../../infra/otlp/registry-producer.ts'

async function sent(registry: Registry) {
  const { resourceMetrics, errors } = await registryProducer(registry).collect()
  const metrics = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics)
  const shown = metrics.map(({ descriptor, dataPoints }) => [
    descriptor.name,
    dataPoints.map(({ attributes, value }) => ({ attributes, value })),
  ])
  return { shown: Object.fromEntries(shown), errors }
}

test('counters, gauges and histograms are sent as they stand', async () => {
  const registers = [new Registry()]
  const counter = new Counter({ name: 'c_total', help: 'c', labelNames: ['what'], registers })
  counter.inc({ what: 'a' }, 3)
  new Gauge({ name: 'g', help: 'g', registers }).set(1.5)
  const labelNames = ['what']
  const histogram = new Histogram({ name: 'h', help: 'h', buckets: [1, 5], labelNames, registers })
  for (const value of [0.5, 1, 2, 9]) histogram.observe({ what: 'a' }, value)
  histogram.observe({ what: 'b' }, 7)
  const [registry = new Registry()] = registers
  const boundaries = [1, 5]
  expect((await sent(registry)).shown).toEqual({
    c_total: [{ attributes: { what: 'a' }, value: 3 }],
    g: [{ attributes: {}, value: 1.5 }],
    h: [
      {
        attributes: { what: 'a' },
        value: { buckets: { boundaries, counts: [2, 1, 1] }, sum: 12.5, count: 4 },
      },
      { attributes: { what: 'b' }, value: { buckets: { boundaries, counts: [0, 0, 1] }, sum: 7, count: 1 } },
    ],
  })
})

test('what cannot be read, as without the database, keeps nothing else back', async () => {
  const registry = new Registry()
  const registers = [registry]
  new Counter({ name: 'c_total', help: 'c', registers }).inc(2)
  const away = new Error('the database is away')
  new Gauge({ name: 'g', help: 'g', registers, collect: () => Promise.reject(away) })
  expect(await sent(registry)).toEqual({ shown: { c_total: [{ attributes: {}, value: 2 }] }, errors: [away] })
})
