import { z } from 'zod'
import { type Config, InvalidSettings, oneOf, settingProblems, webUrl } from '../config.ts'

const address = webUrl.optional()

const samplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const
// Validated only if OTLP is on: an installation may set these variables for other programs too.
const otlpConfig = z.object({
  OTEL_EXPORTER_OTLP_ENDPOINT: address,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address,
  OTEL_EXPORTER_OTLP_PROTOCOL: oneOf('http/protobuf'),
  OTEL_EXPORTER_OTLP_HEADERS: z.string().optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_RESOURCE_ATTRIBUTES: z.string().optional(),
  OTEL_TRACES_EXPORTER: oneOf('otlp', 'none'),
  OTEL_TRACES_SAMPLER: oneOf(...samplers),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number('must be 0–1')
    .min(0, 'must be 0–1')
    .max(1, 'must be 0–1'),
  OTEL_PROPAGATORS: z.array(z.string()),
})

export interface OtlpSettings {
  tracesUrl: string
  /** `name=value`, comma-separated, values percent-encoded, as in the OpenTelemetry specification. */
  headers: string | undefined
  resourceAttributes: string | undefined
  serviceName: string | undefined
  sampler: { name: (typeof samplers)[number]; ratio: number }
  /** True if a request may set its parent span with `traceparent`. */
  acceptsParents: boolean
}

/** Returns the settings; undefined if OTLP is off. Throws InvalidSettings if it is on and a setting is invalid. */
export function otlpSettings(config: Config): OtlpSettings | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces } = config
  const tracesUrl = traces ?? (base && `${base.replace(/\/$/, '')}/v1/traces`)
  if (tracesUrl === undefined || config.OTEL_SDK_DISABLED.toLowerCase() === 'true') return undefined
  const { data, error } = otlpConfig.safeParse(config, { reportInput: true })
  if (error) throw new InvalidSettings(settingProblems(error, config))
  if (data.OTEL_TRACES_EXPORTER === 'none') return undefined
  return {
    tracesUrl,
    headers: data.OTEL_EXPORTER_OTLP_HEADERS,
    resourceAttributes: data.OTEL_RESOURCE_ATTRIBUTES,
    serviceName: data.OTEL_SERVICE_NAME,
    sampler: { name: data.OTEL_TRACES_SAMPLER, ratio: data.OTEL_TRACES_SAMPLER_ARG },
    acceptsParents: data.OTEL_PROPAGATORS.includes('tracecontext'),
  }
}
