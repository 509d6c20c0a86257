import { expect, it } from 'vitest'
import { misspelledSettings, readConfig } from '../../../infra/config.ts'
import { otlpSettings } from '../../../infra/otlp/settings.ts'

const settingsFor = (env: Record<string, string>) => otlpSettings(readConfig(env))
const endpoint = 'http://collector:4318'

it.each([
  {},
  { OTEL_TRACES_SAMPLER: 'xray', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_SERVICE_NAME: 'mine' },
  { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: 'TRUE' },
  { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_EXPORTER: 'none' },
  { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${endpoint}/m`, OTEL_METRICS_EXPORTER: 'otlp' },
  { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${endpoint}/t`, OTEL_TRACES_EXPORTER: 'none' },
])('OTLP is off with %o', (env) => {
  expect(settingsFor(env)).toBeUndefined()
})

it('sends traces to /v1/traces below the endpoint, or to the traces endpoint as it is', () => {
  const base = { OTEL_EXPORTER_OTLP_ENDPOINT: `${endpoint}/otlp/` }
  const traces = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://traces:1/own' }
  expect(settingsFor(base)?.tracesUrl).toBe(`${endpoint}/otlp/v1/traces`)
  expect(settingsFor({ ...base, ...traces })?.tracesUrl).toBe('http://traces:1/own')
  expect(settingsFor(traces)?.tracesUrl).toBe('http://traces:1/own')
})

it("ignores OpenTelemetry's variables for metrics, whatever their values", () => {
  const metrics = {
    OTEL_METRICS_EXPORTER: 'prometheus',
    OTEL_METRIC_EXPORT_INTERVAL: '0',
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'nowhere',
    OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'grpc',
  }
  const base = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }
  expect(settingsFor({ ...base, ...metrics })).toEqual(settingsFor(base))
  expect(misspelledSettings(metrics)).toEqual([])
})

it("uses OpenTelemetry's names and defaults", () => {
  expect(settingsFor({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })).toMatchObject({
    sampler: { name: 'parentbased_always_on', ratio: 1 },
    acceptsParents: true,
  })
  const env = {
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.05',
    OTEL_PROPAGATORS: 'none',
  }
  expect(settingsFor({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...env })).toMatchObject({
    sampler: { name: 'traceidratio', ratio: 0.05 },
    acceptsParents: false,
  })
})

it('rejects unsupported values, naming every setting', () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_TRACES_SAMPLER: 'xray',
    OTEL_TRACES_SAMPLER_ARG: '5',
  }
  const read = () => settingsFor(env)
  for (const name of Object.keys(env)) expect(read).toThrow(name)
})
