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
// What an installation sets for all its programs may be nothing that this one knows. So it is looked at only where it
// would be used.
const used = z.object({
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
  /** As the standard writes them: `name=value`, comma-separated, values percent-encoded. */
  headers: string | undefined
  resourceAttributes: string | undefined
  serviceName: string | undefined
  sampler: { name: (typeof samplers)[number]; ratio: number }
  /** Whether a request may name the trace that it belongs to. */
  acceptsParents: boolean
}

/** undefined where nothing is sent. Throws InvalidSettings where something is. */
export function otlpSettings(config: Config): OtlpSettings | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces } = config
  const tracesUrl = traces ?? (base && `${base.replace(/\/$/, '')}/v1/traces`)
  if (tracesUrl === undefined || config.OTEL_SDK_DISABLED.toLowerCase() === 'true') return undefined
  const { data, error } = used.safeParse(config, { reportInput: true })
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
