import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import path from 'node:path'
import { closest, distance } from 'fastest-levenshtein'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { errorMessage } from './thrown.ts'

const splitList = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)

const list = z
  .string()
  .transform(splitList)
  .refine(({ length }) => length > 0, { error: 'must have an entry' })
  .default([])

/**
 * Returns the schema of an integer setting. `max` is by default the longest delay of Node's timers: with a longer one
 * they fire at once.
 */
const integer = (min: number, max = 2_147_483_647) =>
  z
    .string()
    .trim()
    .refine((text) => /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max, {
      error: `must be ${min}–${max}`,
    })
    .transform(Number)

export const oneOf = <const Word extends string>(...words: Word[]) =>
  z.enum(words, { error: `must be ${words.join(' or ')}` })

const port = integer(1, 65535)

const host = z
  .string()
  .refine((text) => isIP(text) > 0 || /^(?=.*[a-z_])[\w-]+(\.[\w-]+)*\.?$/i.test(text), {
    error: 'must be an IP address or a host name',
  })

export const webUrl = z.url({ protocol: /^https?$/, error: 'must start with http:// or https://' })

// The driver treats every scheme as postgres://, and also accepts a folder of sockets.
const databaseUrl = z.string().regex(/^(postgres(ql)?:\/\/|socket:|\/)/i, {
  error: 'must start with postgres:// or postgresql://',
})

// kafkajs splits at the first colon, so it doesn't support IPv6 addresses.
const broker = z
  .string()
  .refine((text) => /^[\w.-]+:\d+$/.test(text) && port.safeParse(text.split(':')[1]).success, {
    error: 'must be host:port, comma-separated',
  })

// Fastify has names for three kinds of networks, and rejects /0.
const trustedProxy = z
  .string()
  .refine(
    (text) =>
      /^(loopback|linklocal|uniquelocal)$/.test(text) ||
      ipaddr.isValid(text) ||
      (ipaddr.isValidCIDR(text) && !/\/0+$/.test(text)),
    { error: 'must be addresses or CIDRs such as 10.0.0.0/8' },
  )

// CloudFront and Bunny have headers of their own. On other edges, docs/operate/proxies.md shows how to set these.
const configuredHeaders = { ja4: 'x-ja4', http2: 'x-http2-fingerprint' }
const edgeHeaderPresets: Record<string, object> = {
  cloudfront: { ja4: 'cloudfront-viewer-ja4-fingerprint' },
  bunny: { ja4: 'cdn-ja4' },
  cloudflare: configuredHeaders,
  fastly: configuredHeaders,
  haproxy: configuredHeaders,
}

function edgeHeadersOf(text: string): object {
  const entries = splitList(text.toLowerCase()).map((part) => part.split('='))
  return edgeHeaderPresets[text] ?? Object.fromEntries(entries)
}

const optionalText = z.string().min(1).optional()

// Parses a program and its arguments.
const commandLine = z
  .string()
  .regex(/^[^'"]*\S[^'"]*$/, { error: 'must be a program and its arguments, without quotes' })
  .transform((text) => text.trim().split(/\s+/))

// Normalizes a base URL as browsers do, without a trailing slash.
const publicUrl = z
  .string()
  .refine(isBaseUrl, {
    error: 'must be a URL such as https://tidegate.example, without query, fragment or credentials',
  })
  .transform((text) => new URL(text).href.replace(/\/+$/, ''))

// Names of headers, in lower case.
const headerName = z
  .string()
  .regex(/^[a-z0-9-]{1,64}$/, { error: 'must name headers such as ja4=X-JA4' })
const edgeHeaders = z.strictObject(
  { ja4: headerName.optional(), http2: headerName.optional() },
  {
    error: `must be ${Object.keys(edgeHeaderPresets).join(', ')}, or names such as ja4=X-JA4,http2=X-HTTP2-Fingerprint`,
  },
)

/** Names of the headers with a client's JA4 and HTTP/2 fingerprints. */
export type EdgeHeaders = z.infer<typeof edgeHeaders>

const listFile = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,39}=.+$/, {
    error: 'must be a category and a file, such as spam=/lists/drop.txt',
  })
  .transform((text) => {
    const [category = ''] = text.split('=', 1)
    return { category, file: text.slice(category.length + 1) }
  })

const retentionDays = integer(2, 36_500)

const settings = z.object({
  PORT: integer(0, 65535).default(8787),
  HOST: host.default('127.0.0.1'),
  /** Port of /metrics. Default: PORT. */
  METRICS_PORT: port.optional(),
  /** Port on which the role api serves event schemas with the Schema Registry API. Default: off. */
  SCHEMAS_PORT: port.optional(),
  /** Credentials for the schemas. Default: no authentication. */
  SCHEMAS_AUTH: z
    .string()
    .regex(/^[^:]+:.+$/s, { error: 'must be user:password' })
    .optional(),
  /** Serves the npm packages of this version at /sdk. */
  SDK_PACKAGES: oneOf('on', 'off').default('off'),
  CONSOLE: oneOf('on', 'off').default('on'),
  /** Port of the console. Default: PORT. */
  CONSOLE_PORT: port.optional(),
  PUBLIC_URL: publicUrl.optional(),
  DATA_DIR: z.string().min(1).default('.tidegate'),
  DATABASE_URL: databaseUrl.optional(),
  /** Connection limit per process. Default: depends on its roles (services/server/connections.ts). */
  DATABASE_MAX_CONNECTIONS: integer(1, 1000).optional(),
  /** Makes Kafka the event log instead of Postgres. */
  KAFKA_BROKERS: list.pipe(z.array(broker)),
  /** Time that startup waits for an unavailable log. */
  LOG_WAIT_MS: integer(0, 3_600_000).default(60_000),
  KAFKA_TOPIC_PREFIX: z
    .string()
    .regex(/^[a-zA-Z0-9._-]{0,150}$/, { error: 'must be up to 150 letters, digits and ._-' })
    .default(''),
  KAFKA_SECURITY_PROTOCOL: oneOf('PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL').default(
    'PLAINTEXT',
  ),
  KAFKA_SSL_CA_FILE: optionalText,
  KAFKA_SSL_CERT_FILE: optionalText,
  KAFKA_SSL_KEY_FILE: optionalText,
  KAFKA_SASL_MECHANISM: oneOf('PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER').optional(),
  KAFKA_SASL_USERNAME: optionalText,
  KAFKA_SASL_PASSWORD: optionalText,
  // `fetch` rejects URLs with credentials.
  KAFKA_SASL_OAUTH_TOKEN_URL: webUrl
    .regex(/^[^@]*$/, { error: 'must have no credentials' })
    .optional(),
  KAFKA_SASL_OAUTH_SCOPE: optionalText,
  /** -1 = the brokers' default. */
  KAFKA_REPLICATION_FACTOR: z
    .union([z.literal('-1').transform(Number), integer(1, 15)], { error: 'must be -1 or 1–15' })
    .default(-1),
  KAFKA_MIN_INSYNC_REPLICAS: integer(1, 15).optional(),
  KAFKA_COMPRESSION_TYPE: oneOf('none', 'gzip', 'zstd').default('none'),
  SCHEMA_REGISTRY_URL: webUrl.optional(),
  TOPIC_PARTITIONS: integer(1, 1000).default(12),
  COLLECT_RETENTION_DAYS: integer(1, 36_500).default(7),
  /** Time within which deleted data of tidegate.facts.v1 is removed from the brokers' disks. */
  FACTS_GONE_WITHIN_MS: integer(8000).default(48 * 60 * 60 * 1000),
  // Defaults for organizations without their own retention; not set = forever.
  SESSION_RETENTION_DAYS: retentionDays.optional(),
  DECISION_RETENTION_DAYS: integer(1, 36_500).optional(),
  VISITOR_RETENTION_DAYS: retentionDays.optional(),
  GATE_RETENTION_DAYS: retentionDays.default(30),
  WEBHOOK_RETENTION_DAYS: integer(7, 30).optional(),
  /** Default: generated once and stored in DATA_DIR (development only). */
  TIDEGATE_MASTER_KEYS: optionalText,
  TIDEGATE_MASTER_KEYS_COMMAND: commandLine.optional(),
  TRUSTED_PROXIES: list.pipe(z.array(trustedProxy)),
  /** Headers with which an edge forwards TLS and HTTP/2 fingerprints of clients. */
  EDGE_HEADERS: z.string().transform(edgeHeadersOf).pipe(edgeHeaders).optional(),
  ADDRESS_FILE: optionalText,
  /** Additional base URLs of this installation, such as paths on customers' websites. */
  FIRST_PARTY_URLS: list.pipe(z.array(publicUrl).max(19, { error: 'must be up to 19 URLs' })),
  /** Longest validity of an agent's signature, from `created` to `expires`. */
  SIGNATURE_MAX_SECONDS: integer(60, 86_400).default(3600),
  /** Fetches agents' keys and reverse DNS names from the internet. */
  AGENT_LOOKUPS: oneOf('on', 'off').default('on'),
  /** File with the apps whose attestations are verified, including their Play Console keys. */
  ATTESTED_APPS_FILE: optionalText,
  CITY_MMDB: optionalText,
  ASN_MMDB: optionalText,
  ANONYMOUS_MMDB: optionalText,
  /** Reputation lists of IP addresses, each with its category. */
  REPUTATION_LISTS: list.pipe(z.array(listFile).max(20, { error: 'must be up to 20 lists' })),
  BATCH_INTERVAL_MS: integer(100).default(2000),
  COLLECT_MAX_BACKLOG_MS: integer(100).default(750),
  COLLECT_MAX_IN_FLIGHT: integer(2).default(1000),
  COLLECT_SOURCE_MB_PER_HOUR: integer(10).default(900),
  COLLECT_ORGANIZATION_MB_PER_HOUR: integer(10).optional(),
  HAND_OFF_TIMEOUT_MS: integer(100, 60_000).default(2000),
  /** Units per 60 seconds for organizations without limits of their own. A request with a secret key may cost 10. */
  RATE_LIMIT_SECRET: integer(10).default(600),
  RATE_LIMIT_PUBLISHABLE: integer(1).default(3000),
  /** Requests that an organization can have scored per 60 seconds. One call contains up to 50. */
  RATE_LIMIT_REQUESTS: integer(50).default(12_000),
  /** Units per 60 seconds per console session. The overview page costs about 80. */
  RATE_LIMIT_CONSOLE: integer(100).default(600),
  WEBHOOK_ALLOWED_NETWORKS: list.refine((networks) => networks.every(ipaddr.isValidCIDR), {
    error: 'must be CIDRs such as 10.0.0.0/8',
  }),
  /** Delay in seconds before each attempt of a webhook delivery, which fails after the last one. */
  WEBHOOK_RETRY_SECONDS: z
    .string()
    .default('0,5,300,1800,7200,18000,36000,50400,72000,86400')
    .refine((text) => text.split(',').every((wait) => /^\s*\d{1,8}(\.\d+)?\s*$/.test(wait)), {
      error: 'must be seconds of up to 8 digits, comma-separated',
    })
    .transform((text) => text.split(',').map(Number)),
  /** Time from the DNS lookup of the receiver to the last byte of its response. */
  WEBHOOK_TIMEOUT_MS: integer(100, 60_000).default(15_000),
  /** Lease of a delivery: after a process is killed, another one takes its deliveries over once their leases expire. */
  WEBHOOK_LEASE_MS: integer(1000).default(6000),
  /** Time that a stopping server keeps serving new requests, so that clients notice the shutdown. */
  DRAIN_MS: integer(0, 60_000).default(1000),
  // OpenTelemetry's standard names and defaults. otlp/settings.ts validates the values only if OTLP is on, because they
  // may be set for all programs of a host.
  OTEL_SDK_DISABLED: z.string().default('false'),
  OTEL_EXPORTER_OTLP_ENDPOINT: optionalText,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: optionalText,
  OTEL_EXPORTER_OTLP_PROTOCOL: z.string().default('http/protobuf'),
  OTEL_EXPORTER_OTLP_HEADERS: optionalText,
  OTEL_SERVICE_NAME: optionalText,
  OTEL_RESOURCE_ATTRIBUTES: optionalText,
  OTEL_TRACES_EXPORTER: z.string().default('otlp'),
  OTEL_TRACES_SAMPLER: z.string().default('parentbased_always_on'),
  OTEL_TRACES_SAMPLER_ARG: z.string().default('1'),
  OTEL_PROPAGATORS: z.string().default('tracecontext,baggage').transform(splitList),
  LOG_LEVEL: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent').default('info'),
})

export type Config = z.infer<typeof settings>

/** Returns the path of the IP data file, which `tidegate data update` writes and servers reload. */
export const addressFileOf = ({ ADDRESS_FILE, DATA_DIR }: Config): string =>
  ADDRESS_FILE ?? path.join(DATA_DIR, 'addresses.bin')

export const settingNames = Object.keys(settings.shape)

// Settings that can also be read from the file named by `<name>_FILE`, because orchestrators mount secrets as files.
const secretNames = [
  'DATABASE_URL',
  'KAFKA_SASL_PASSWORD',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'SCHEMAS_AUTH',
  'SCHEMA_REGISTRY_URL',
  'TIDEGATE_MASTER_KEYS',
]

/** Thrown for invalid settings at startup and by `tidegate config check`. */
export class InvalidSettings extends Error {
  readonly problems: string[]

  constructor(problems: string[]) {
    super(`Settings are not valid:\n  ${problems.join('\n  ')}`)
    this.problems = problems
  }
}

/** Parses the environment. Throws InvalidSettings, which lists every invalid setting. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const present = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))
  const problems = secretNames.flatMap((name) => resolveSecretFile(name, present))
  if (present.TIDEGATE_MASTER_KEYS && present.TIDEGATE_MASTER_KEYS_COMMAND)
    problems.push(
      'TIDEGATE_MASTER_KEYS_COMMAND: TIDEGATE_MASTER_KEYS or TIDEGATE_MASTER_KEYS_FILE is also set: keep one',
    )
  if (present.EDGE_HEADERS && !present.TRUSTED_PROXIES)
    problems.push('EDGE_HEADERS needs TRUSTED_PROXIES: without it every edge header is ignored')
  for (const name of ['TLS_CERT_FILE', 'TLS_KEY_FILE', 'TLS_PORT'])
    if (present[name])
      problems.push(
        `${name} was removed: terminate TLS in a proxy (docs/operate/proxies.md) and unset it`,
      )
  const { data, error } = settings.safeParse(present, { reportInput: true })
  if (error) problems.push(...settingProblems(error, present))
  if (data) problems.push(...findConflicts(data))
  if (data && problems.length === 0) return data
  throw new InvalidSettings([...problems, ...misspelledSettings(env)])
}

/** Returns a line per invalid setting, with its value unless it may contain a secret. */
export function settingProblems({ issues }: z.ZodError, values: Record<string, unknown>): string[] {
  return issues.map(({ path: [first], message, input }) => {
    const name = String(first)
    return `${name} ${message}${valueText(name, typeof input === 'string' ? input : values[name])}`
  })
}

function valueText(name: string, value: unknown): string {
  if (typeof value !== 'string') return ''
  const isSecret = secretNames.includes(name) || name.endsWith('_COMMAND') || value.includes('@')
  if (!isSecret) return `, got "${value}"`
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(value)?.[0]
  return scheme ? `, got ${scheme}...` : ''
}

const portNames = ['PORT', 'METRICS_PORT', 'SCHEMAS_PORT', 'CONSOLE_PORT'] as const

function findConflicts(config: Config): string[] {
  const problems: string[] = []
  for (const [i, name] of portNames.entries()) {
    const earlier = portNames.slice(0, i).find((port) => config[port] === config[name])
    if (earlier && config[name])
      problems.push(`${name} must differ from ${earlier}, got ${config[name]} for both`)
  }
  const { KAFKA_REPLICATION_FACTOR: replicas, KAFKA_MIN_INSYNC_REPLICAS: inSync = 1 } = config
  if (replicas !== -1 && inSync > replicas)
    problems.push(
      `KAFKA_MIN_INSYNC_REPLICAS must be at most KAFKA_REPLICATION_FACTOR (${replicas}), got "${inSync}"`,
    )
  return problems
}

/** Returns a line per variable whose name resembles a setting that is not set. */
export function misspelledSettings(env: NodeJS.ProcessEnv): string[] {
  const names = [...settingNames, ...secretNames.map((name) => `${name}_FILE`)]
  return Object.keys(env).flatMap((name) => {
    if (names.includes(name) || name.length < 6 || !env[name]) return []
    const likely = closest(name.toUpperCase(), names)
    const isNear = distance(name.toUpperCase(), likely) <= (name.length < 10 ? 1 : 2)
    return isNear && !env[likely] ? [`${name} is not a setting: did you mean ${likely}?`] : []
  })
}

// If `<name>_FILE` is set, sets the setting to that file's content. Returns the problems.
function resolveSecretFile(name: string, present: NodeJS.ProcessEnv): string[] {
  const file = present[`${name}_FILE`]
  if (file === undefined) return []
  if (present[name] !== undefined) return [`${name}_FILE: ${name} is also set: keep one`]
  try {
    present[name] = readSettingFile(`${name}_FILE`, file).trim()
    return present[name] === '' ? [`${name}_FILE: ${file} is empty`] : []
  } catch (error) {
    return [errorMessage(error)]
  }
}

/** Reads the file that a setting names. Throws an error that names the setting and the file. */
export function readSettingFile(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? cause.code : cause
    throw new Error(`${name}: ${file} cannot be read (${reason})`, { cause })
  }
}

function isBaseUrl(text: string): boolean {
  const url = webUrl.safeParse(text).success ? new URL(text) : undefined
  return url?.href === `${url?.origin}${url?.pathname}`
}
