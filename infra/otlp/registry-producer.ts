import { type Attributes, type HrTime, ValueType } from '@opentelemetry/api'
import { millisToHrTime } from '@opentelemetry/core'
import { emptyResource } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics'
import type { MetricObjectWithValues, MetricValue, MetricValueWithName, Registry } from 'prom-client'

/** What `/metrics` shows, under the same names and labels, as OpenTelemetry's readers take it. */
export function registryProducer(registry: Registry): MetricProducer {
  const startTime = millisToHrTime(Date.now())
  return {
    async collect() {
      const { found, errors } = await readEach(registry)
      const span = { startTime, endTime: millisToHrTime(Date.now()) }
      const metrics = found.flatMap((metric) => metricData(metric, span) ?? [])
      const scopeMetrics = [{ scope: { name: 'tidegate' }, metrics }]
      return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors }
    },
  }
}

// One by one: what asks the database fails without it, and the others are what one wants to see then.
async function readEach(registry: Registry) {
  const names = registry.getMetricsAsArray().map(({ name }) => name)
  const read = await Promise.allSettled(names.map((name) => registry.getSingleMetric(name)?.get()))
  return {
    found: read.flatMap((result) => (result.status === 'fulfilled' ? (result.value ?? []) : [])),
    errors: read.flatMap((result) => (result.status === 'rejected' ? [result.reason] : [])),
  }
}

type TimeSpan = Record<'startTime' | 'endTime', HrTime>

// undefined for a summary, of which there is none.
function metricData(
  metric: MetricObjectWithValues<MetricValue<string>>,
  span: TimeSpan,
): MetricData | undefined {
  const { name, help: description, values } = metric
  const shared = {
    descriptor: { name, description, unit: '', valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  }
  const dataPoints = values.map(({ labels, value }) => ({ ...span, attributes: textOf(labels), value }))
  // By the name that prom-client gives to the kind: its declaration has an enum that it does not export as a value.
  switch (String(metric.type)) {
    case 'counter':
      return { ...shared, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    case 'gauge':
      return { ...shared, dataPointType: DataPointType.GAUGE, dataPoints }
    case 'histogram':
      return { ...shared, dataPointType: DataPointType.HISTOGRAM, dataPoints: histograms(metric, span) }
    default:
      return undefined
  }
}

const textOf = (labels: MetricValue<string>['labels']): Attributes =>
  Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]))

// prom-client has a value for each bucket, the sum and the count; buckets count all that is no greater.
function histograms(
  { name, values }: { name: string; values: MetricValueWithName<string>[] },
  span: TimeSpan,
) {
  const series = Map.groupBy(values, ({ labels: { le: _, ...rest } }) => JSON.stringify(rest))
  return [...series.values()].map((ofOne) => {
    const { le: _, ...labels } = ofOne[0]?.labels ?? {}
    return { ...span, attributes: textOf(labels), value: histogramOf(name, ofOne) }
  })
}

function histogramOf(name: string, values: MetricValueWithName<string>[]): Histogram {
  const buckets = values.filter(({ metricName }) => metricName === `${name}_bucket`)
  const partOf = (part: string) => values.find(({ metricName }) => metricName === `${name}_${part}`)?.value
  return {
    buckets: {
      boundaries: buckets.map(({ labels }) => Number(labels.le)).filter(Number.isFinite),
      counts: buckets.map(({ value }, i) => value - (buckets[i - 1]?.value ?? 0)),
    },
    sum: partOf('sum') ?? 0,
    count: partOf('count') ?? 0,
  }
}
