import { readFileSync } from 'node:fs'
import path from 'node:path'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'

const parts = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)

const list = z.string().default('').transform(parts)

// The header of CloudFront and Bunny is theirs. The others have none, and docs/operate/proxies.md says how they make these.
const ownHeaders = { ja4: 'x-ja4', http2: 'x-http2-fingerprint' }
const edges: Record<string, object> = {
  cloudfront: { ja4: 'cloudfront-viewer-ja4-fingerprint' },
  bunny: { ja4: 'cdn-ja4' },
  cloudflare: ownHeaders,
  fastly: ownHeaders,
  haproxy: ownHeaders,
}

function edgeHeadersOf(text: string): object {
  const named = () => parts(text.toLowerCase()).map((part) => part.split('='))
  return edges[text] ?? Object.fromEntries(named())
}

const optionalText = z.string().min(1).optional()

// A program and its arguments.
const words = z
  .string()
  .regex(/^[^'"]*\S[^'"]*$/, { error: 'expected a program and its arguments, without quotes' })
  .transform((text) => text.trim().split(/\s+/))

// As browsers write it, without a slash at its end.
const publicUrl = z
  .string()
  .refine(isBaseUrl, {
    error: 'expected an address such as https://tidegate.example, without query, fragment or credentials',
  })
  .transform((text) => new URL(text).href.replace(/\/+$/, ''))

// Names of headers, in lower case.
const headerName = z.string().regex(/^[a-z0-9-]{1,64}$/)
const edgeHeaders = z.strictObject(
  { ja4: headerName.optional(), http2: headerName.optional() },
  {
    error: `expected ${Object.keys(edges).join(', ')}, or names such as ja4=X-JA4,http2=X-HTTP2-Fingerprint`,
  },
)

/** Names of the headers that have a client's JA4 and HTTP/2 fingerprint. */
export type EdgeHeaders = z.infer<typeof edgeHeaders>

const listFile = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,39}=.+$/, {
    error: 'expected a category and a file, such as spam=/lists/drop.txt',
  })
  .transform((text) => {
    const [category = ''] = text.split('=', 1)
    return { category, file: text.slice(category.length + 1) }
  })

const retentionDays = z.coerce.number().int().min(2).max(36_500)

const settings = z.object({
  PORT: z.coerce.number().int().min(0).max(65535).default(8787),
  HOST: z.string().default('127.0.0.1'),
  /** Not set = /metrics is on PORT. */
  METRICS_PORT: z.coerce.number().int().min(1).max(65535).optional(),
  /** Set = the role api serves the schemas of events there, as a Schema Registry does. */
  SCHEMAS_PORT: z.coerce.number().int().min(1).max(65535).optional(),
  /** Not set = everybody who reaches the port may read them. */
  SCHEMAS_AUTH: z
    .string()
    .regex(/^[^:]+:.+$/s, { error: 'expected user:password' })
    .optional(),
  CONSOLE: z.enum(['on', 'off']).default('on'),
  /** Not set = the console is on PORT. */
  CONSOLE_PORT: z.coerce.number().int().min(1).max(65535).optional(),
  PUBLIC_URL: publicUrl.optional(),
  DATA_DIR: z.string().min(1).default('.tidegate'),
  DATABASE_URL: optionalText,
  /** The limit of one process. Not set = by its roles (services/server/connections.ts). */
  DATABASE_MAX_CONNECTIONS: z.coerce.number().int().min(1).max(1000).optional(),
  /** Set = Kafka is the log instead of Postgres. */
  KAFKA_BROKERS: list,
  /** A start waits for so long for a log that does not answer yet. */
  LOG_WAIT_MS: z.coerce.number().int().min(0).max(3_600_000).default(60_000),
  KAFKA_TOPIC_PREFIX: z
    .string()
    .regex(/^[a-zA-Z0-9._-]*$/)
    .default(''),
  KAFKA_SECURITY_PROTOCOL: z.enum(['PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL']).default('PLAINTEXT'),
  KAFKA_SSL_CA_FILE: optionalText,
  KAFKA_SSL_CERT_FILE: optionalText,
  KAFKA_SSL_KEY_FILE: optionalText,
  KAFKA_SASL_MECHANISM: z.enum(['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER']).optional(),
  KAFKA_SASL_USERNAME: optionalText,
  KAFKA_SASL_PASSWORD: optionalText,
  KAFKA_SASL_OAUTH_TOKEN_URL: z.url().optional(),
  KAFKA_SASL_OAUTH_SCOPE: optionalText,
  /** -1 = the brokers' own. */
  KAFKA_REPLICATION_FACTOR: z.coerce.number().int().min(-1).max(15).default(-1),
  KAFKA_MIN_INSYNC_REPLICAS: z.coerce.number().int().min(1).max(15).optional(),
  KAFKA_COMPRESSION_TYPE: z.enum(['none', 'gzip', 'zstd']).default('none'),
  SCHEMA_REGISTRY_URL: z.url().optional(),
  TOPIC_PARTITIONS: z.coerce.number().int().min(1).max(1000).default(12),
  COLLECT_RETENTION_DAYS: z.coerce.number().int().min(1).default(7),
  /** What is deleted of tidegate.facts.v1 is on no broker's disk after so long. */
  FACTS_GONE_WITHIN_MS: z.coerce
    .number()
    .int()
    .min(8000)
    .default(48 * 60 * 60 * 1000),
  // For organizations without days of their own; not set = for ever.
  SESSION_RETENTION_DAYS: retentionDays.optional(),
  DECISION_RETENTION_DAYS: z.coerce.number().int().min(1).max(36_500).optional(),
  VISITOR_RETENTION_DAYS: retentionDays.optional(),
  GATE_RETENTION_DAYS: retentionDays.default(30),
  WEBHOOK_RETENTION_DAYS: z.coerce.number().int().min(7).max(30).optional(),
  /** Not set = made once and kept in DATA_DIR (development only). */
  TIDEGATE_MASTER_KEYS: optionalText,
  TIDEGATE_MASTER_KEYS_COMMAND: words.optional(),
  TRUSTED_PROXIES: list,
  /** Which headers of an edge say how clients began TLS and HTTP/2. */
  EDGE_HEADERS: z.string().transform(edgeHeadersOf).pipe(edgeHeaders).optional(),
  ADDRESS_FILE: optionalText,
  /** More addresses under which clients know this installation, as paths of customers' own sites. */
  FIRST_PARTY_URLS: list.pipe(z.array(publicUrl).max(19)),
  /** From the creation of an agent's signature to its end. */
  SIGNATURE_MAX_SECONDS: z.coerce.number().int().min(60).max(86_400).default(3600),
  /** Keys of agents and host names of addresses are fetched from the internet. */
  AGENT_LOOKUPS: z.enum(['on', 'off']).default('on'),
  /** Set = attestations of these apps are verified. It has keys of the Play Console. */
  ATTESTED_APPS_FILE: optionalText,
  CITY_MMDB: optionalText,
  ASN_MMDB: optionalText,
  ANONYMOUS_MMDB: optionalText,
  /** Lists of addresses with a bad reputation, each with its category. */
  REPUTATION_LISTS: list.pipe(z.array(listFile).max(20)),
  BATCH_INTERVAL_MS: z.coerce.number().int().min(100).default(2000),
  COLLECT_MAX_BACKLOG_MS: z.coerce.number().int().min(100).default(750),
  COLLECT_MAX_IN_FLIGHT: z.coerce.number().int().min(2).default(1000),
  COLLECT_SOURCE_MB_PER_HOUR: z.coerce.number().int().min(10).default(900),
  COLLECT_ORGANIZATION_MB_PER_HOUR: z.coerce.number().int().min(10).optional(),
  HAND_OFF_TIMEOUT_MS: z.coerce.number().int().min(100).max(60_000).default(2000),
  /** Units in 60 seconds for organizations without limits of their own. A request of a secret key may cost 10. */
  RATE_LIMIT_SECRET: z.coerce.number().int().min(10).default(600),
  RATE_LIMIT_PUBLISHABLE: z.coerce.number().int().min(1).default(3000),
  /** Requests of an organization that are scored in 60 seconds. One call has up to 50. */
  RATE_LIMIT_REQUESTS: z.coerce.number().int().min(50).default(12_000),
  /** Units in 60 seconds of each console session. Its overview takes about 80. */
  RATE_LIMIT_CONSOLE: z.coerce.number().int().min(100).default(600),
  WEBHOOK_ALLOWED_NETWORKS: list.refine((networks) => networks.every(ipaddr.isValidCIDR), {
    error: 'expected CIDRs such as 10.0.0.0/8',
  }),
  /** Seconds before each attempt of a webhook delivery. With as many failures the delivery has failed. */
  WEBHOOK_RETRY_SECONDS: z
    .string()
    .default('0,5,300,1800,7200,18000,36000,50400,72000,86400')
    .transform((text) => text.split(',').map(Number))
    .refine((waits) => waits.every((wait) => wait >= 0), { error: 'expected seconds, comma-separated' }),
  /** From the look-up of the receiver's address to the last byte of its answer. */
  WEBHOOK_TIMEOUT_MS: z.coerce.number().int().min(100).max(60_000).default(15_000),
  /** A delivery of a killed process is left alone for so long. With a look, another has it within ten seconds. */
  WEBHOOK_LEASE_MS: z.coerce.number().int().min(1000).default(6000),
  /** A stopping server still answers for so long. Clients learn meanwhile that it stops. */
  DRAIN_MS: z.coerce.number().int().min(0).max(60_000).default(1000),
  // Standard names and their defaults. What may stand in them is checked where it is used (otlp/settings.ts): an
  // installation sets them for all its programs.
  OTEL_SDK_DISABLED: z.string().default('false'),
  OTEL_EXPORTER_OTLP_ENDPOINT: optionalText,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: optionalText,
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: optionalText,
  OTEL_EXPORTER_OTLP_PROTOCOL: z.string().default('http/protobuf'),
  OTEL_EXPORTER_OTLP_HEADERS: optionalText,
  OTEL_SERVICE_NAME: optionalText,
  OTEL_RESOURCE_ATTRIBUTES: optionalText,
  OTEL_TRACES_EXPORTER: z.string().default('otlp'),
  OTEL_TRACES_SAMPLER: z.string().default('parentbased_always_on'),
  OTEL_TRACES_SAMPLER_ARG: z.string().default('1'),
  OTEL_PROPAGATORS: z.string().default('tracecontext,baggage').transform(parts),
  OTEL_METRICS_EXPORTER: z.string().default('otlp'),
  OTEL_METRIC_EXPORT_INTERVAL: z.string().default('60000'),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
})

export type Config = z.infer<typeof settings>

/** Where `tidegate data update` writes the file of addresses, and servers follow it. */
export const addressFileOf = ({ ADDRESS_FILE, DATA_DIR }: Config): string =>
  ADDRESS_FILE ?? path.join(DATA_DIR, 'addresses.bin')

export const settingNames = Object.keys(settings.shape)

// Each may be in a file instead, which the setting `<name>_FILE` names: orchestrators mount secrets so.
const secretNames = [
  'DATABASE_URL',
  'KAFKA_SASL_PASSWORD',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'SCHEMAS_AUTH',
  'SCHEMA_REGISTRY_URL',
  'TIDEGATE_MASTER_KEYS',
] as const

/** Throws one error that names every setting that is not valid. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const present = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))
  const problems = secretNames.flatMap((name) => readSecret(name, present))
  if (present.TIDEGATE_MASTER_KEYS && present.TIDEGATE_MASTER_KEYS_COMMAND)
    problems.push('TIDEGATE_MASTER_KEYS_COMMAND: TIDEGATE_MASTER_KEYS or its file is set, too')
  if (present.EDGE_HEADERS && !present.TRUSTED_PROXIES)
    problems.push('EDGE_HEADERS: TRUSTED_PROXIES names nobody, so that no header would be believed')
  for (const name of ['TLS_CERT_FILE', 'TLS_KEY_FILE', 'TLS_PORT'])
    if (present[name])
      problems.push(`${name} was removed: terminate TLS in a proxy (docs/operate/proxies.md) and unset it`)
  const result = settings.safeParse(present)
  for (const { path, message } of result.error?.issues ?? []) problems.push(`${path.join('.')}: ${message}`)
  if (result.success && problems.length === 0) return result.data
  throw new Error(`Settings are not valid:\n  ${problems.join('\n  ')}`)
}

// Puts the content of the file in the setting's place, and returns what is wrong.
function readSecret(name: string, present: NodeJS.ProcessEnv): string[] {
  const file = present[`${name}_FILE`]
  if (file === undefined) return []
  if (present[name] !== undefined) return [`${name}_FILE: ${name} is set, too`]
  try {
    present[name] = readFileSync(file, 'utf8').trim()
    return present[name] === '' ? [`${name}_FILE: ${file} is empty`] : []
  } catch (error) {
    return [`${name}_FILE: ${file} cannot be read (${codeOf(error)})`]
  }
}

const codeOf = (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error)

function isBaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, origin, href, pathname } = new URL(text)
  return ['http:', 'https:'].includes(protocol) && href === `${origin}${pathname}`
}
