import { z } from 'zod'
import { type Config, InvalidSettings, integer, oneOf, settingProblems, webUrl } from '../config.ts'

const address = webUrl({ hasCredentials: true }).optional()
const exporter = oneOf('otlp', 'none')

const samplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const
export type SamplerName = (typeof samplers)[number]

// What an installation sets for all its programs may be nothing that this one knows. So it is looked at only where it
// would be used.
const used = z.object({
  OTEL_EXPORTER_OTLP_ENDPOINT: address,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address,
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: address,
  OTEL_EXPORTER_OTLP_PROTOCOL: oneOf('http/protobuf'),
  OTEL_EXPORTER_OTLP_HEADERS: z.string().optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_RESOURCE_ATTRIBUTES: z.string().optional(),
  OTEL_TRACES_EXPORTER: exporter,
  OTEL_METRICS_EXPORTER: exporter,
  OTEL_METRIC_EXPORT_INTERVAL: integer(100),
  OTEL_TRACES_SAMPLER: oneOf(...samplers),
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number('must be 0–1').min(0, 'must be 0–1').max(1, 'must be 0–1'),
  OTEL_PROPAGATORS: z.array(z.string()),
})

export interface OtlpSettings {
  /** Where spans go; undefined = nowhere. */
  tracesUrl: string | undefined
  metricsUrl: string | undefined
  /** As the standard writes them: `name=value`, comma-separated, values percent-encoded. */
  headers: string | undefined
  resourceAttributes: string | undefined
  serviceName: string | undefined
  metricsEveryMs: number
  sampler: { name: SamplerName; ratio: number }
  /** Whether a request may name the trace that it belongs to. */
  acceptsParents: boolean
}

/** undefined where nothing is sent. Throws InvalidSettings where something is. */
export function otlpSettings(config: Config): OtlpSettings | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: both, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces } = config
  const isOn = both ?? traces ?? config.OTEL_EXPORTER_OTLP_METRICS_ENDPOINT
  if (isOn === undefined || config.OTEL_SDK_DISABLED.toLowerCase() === 'true') return undefined
  const result = used.safeParse(config, { reportInput: true })
  if (!result.success) throw new InvalidSettings(settingProblems(result.error, config))
  const settings = settingsOf(result.data)
  return settings.tracesUrl || settings.metricsUrl ? settings : undefined
}

function settingsOf(of: z.infer<typeof used>): OtlpSettings {
  const base = of.OTEL_EXPORTER_OTLP_ENDPOINT?.replace(/\/$/, '')
  const below = (path: string) => base && `${base}/${path}`
  const tracesUrl = of.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? below('v1/traces')
  const metricsUrl = of.OTEL_EXPORTER_OTLP_METRICS_ENDPOINT ?? below('v1/metrics')
  return {
    tracesUrl: of.OTEL_TRACES_EXPORTER === 'otlp' ? tracesUrl : undefined,
    metricsUrl: of.OTEL_METRICS_EXPORTER === 'otlp' ? metricsUrl : undefined,
    headers: of.OTEL_EXPORTER_OTLP_HEADERS,
    resourceAttributes: of.OTEL_RESOURCE_ATTRIBUTES,
    serviceName: of.OTEL_SERVICE_NAME,
    metricsEveryMs: of.OTEL_METRIC_EXPORT_INTERVAL,
    sampler: { name: of.OTEL_TRACES_SAMPLER, ratio: of.OTEL_TRACES_SAMPLER_ARG },
    acceptsParents: of.OTEL_PROPAGATORS.includes('tracecontext'),
  }
}
