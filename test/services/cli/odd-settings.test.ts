import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { misspelledSettings, settingNames } from '../../../infra/config.ts'
import { createApp } from '../../../infra/http/app.ts'
import { createAddressRules } from '../../../infra/safe-http/addresses.ts'
import { createLogger } from '../../../infra/telemetry.ts'
import { checkServerSettings, readServerSettings } from '../../../services/cli/server-settings.ts'

const base = {
  DATABASE_URL: 'postgres://nowhere:1/none',
  TIDEGATE_MASTER_KEYS: 'A'.repeat(44),
  PORT: '0',
}
// Other OTEL_* settings are checked only if an endpoint is set, because they may be set for all programs of a host.
const sending = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }

const splitWords = (text: string) => text.trim().split(/\s+/)
const numbers = splitWords(`0 -1 1 80 8787 65536 1e3 0x10 10s 5MB 1,000 1_000 2.5 NaN ∞ Infinity
  9007199254740993 1e300 0,,5 0,0.5`)
const places = splitWords(`localhost localhost:9092 loopback [::1]:9092 host:0 host:99999 /nowhere
  spam=/nowhere 10.0.0.0/40 10.0.0.0/8 10.0.0.0/8, 0.0.0.0/0 ::/0 ::1 10/8`)
const urls = splitWords(`mysql://user:hunter2@host/db postgres://user:hunter2@host:99999/db
  postgres://host/db?port=abc postgres://user:hun#ter2@host/db http://user:hunter2@host/ https://host
  ftp://host http:host https://host/?a=b mailto:hunter2@host PLAINTEXT://host:9092`)
const others = splitWords('on true nonsense bunny INFO info plain SASL_SSL ,')

const oddValue = fc.oneof(
  fc.constantFrom(...numbers, ...places, ...urls, ...others, ' ', 'a b', 'ja4=X Y'),
  fc.string({ minLength: 1, maxLength: 12 }),
  fc.integer().map(String),
)
// Other tests cover these settings, because checking them runs a program or reads IP data files.
const names = settingNames.filter((name) => !/_COMMAND$|^ADDRESS_FILE$|_LISTS$|_MMDB$/.test(name))

async function outcome(work: Promise<unknown>): Promise<string | undefined> {
  return work.then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  )
}

describe('invalid settings', () => {
  it('are rejected by config check and serve alike, with the name of the setting', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...names), oddValue, async (name, value) => {
        const env = { ...base, ...(name.startsWith('OTEL_') ? sending : {}), [name]: value }
        const roles = name === 'ATTESTED_APPS_FILE' ? 'scoring' : 'collect,projections,webhooks'
        const serveError = await outcome(readServerSettings({ env, roles }))
        const checkError = await outcome(checkServerSettings({ env, roles }))
        expect(checkError).toBe(serveError)
        const message = checkError ?? serveError ?? name
        expect(message).toContain(name.split('_')[0])
        // File paths are not secret.
        if (!name.endsWith('_FILE')) expect(message).not.toContain('hunter2')
      }),
      { numRuns: 1000 },
    )
  }, 60_000)

  it('are those that the server itself would reject', async () => {
    const parts = fc.constantFrom('TRUSTED_PROXIES', 'WEBHOOK_ALLOWED_NETWORKS')
    const octet = fc.constantFrom('0', '10', '255', '256', 'x')
    const network = fc.oneof(
      oddValue,
      fc
        .tuple(octet, octet, fc.integer({ min: -1, max: 40 }))
        .map(([first, second, bits]) => `${first}.${second}.0.0/${bits}`),
      fc.tuple(fc.ipV6(), fc.integer({ min: -1, max: 140 })).map(([ip, bits]) => `${ip}/${bits}`),
    )
    await fc.assert(
      fc.asyncProperty(parts, network, async (name, value) => {
        const env = { ...base, [name]: value }
        const read = readServerSettings({ env, roles: 'api' })
        const isValid = await read.then(
          () => true,
          () => false,
        )
        const entries = value
          .split(',')
          .map((entry) => entry.trim())
          .filter(Boolean)
        const used =
          name === 'TRUSTED_PROXIES'
            ? createApp({
                logger: createLogger('silent'),
                random: Buffer.alloc,
                trustedProxies: entries,
                publicUrl: 'http://127.0.0.1',
              }).then((app) => app.close())
            : Promise.resolve().then(() => createAddressRules(entries))
        const isUsable = entries.length > 0 && (await outcome(used)) === undefined
        expect(isValid, `${name}=${value}`).toBe(isUsable)
      }),
      { numRuns: 300 },
    )
  }, 60_000)

  it.each([
    [{ PORT: 'abc' }, 'PORT must be 0–65535, got "abc"'],
    [{ METRICS_PORT: '0' }, 'METRICS_PORT must be 1–65535, got "0"'],
    [{ BATCH_INTERVAL_MS: '2s' }, 'BATCH_INTERVAL_MS must be 100–2147483647, got "2s"'],
    [{ LOG_LEVEL: 'INFO' }, /LOG_LEVEL must be fatal or .* or silent, got "INFO"/],
    [
      { DATABASE_URL: 'mysql://user:hunter2@host/db' },
      'DATABASE_URL must start with postgres:// or postgresql://, got mysql://...',
    ],
    [{ DATABASE_URL: 'postgres://u:hun#ter2@host/db' }, 'DATABASE_URL cannot be used: Invalid URL'],
    [
      { DATABASE_URL: 'postgres://host/db?port=abc' },
      'DATABASE_URL cannot be used: its port must be 1–65535',
    ],
    [
      { DATABASE_URL: 'postgres://host/db?sslrootcert=/nowhere' },
      'DATABASE_URL cannot be used: ENOENT',
    ],
    [
      { TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/40' },
      'TRUSTED_PROXIES must be addresses or CIDRs such as 10.0.0.0/8, got "10.0.0.0/40"',
    ],
    [
      { KAFKA_BROKERS: 'a:1,localhost' },
      'KAFKA_BROKERS must be host:port, comma-separated, got "localhost"',
    ],
    [{ KAFKA_BROKERS: ',' }, 'KAFKA_BROKERS must have an entry, got ","'],
    [{ DATABASE_URL: '' }, 'DATABASE_URL is not set'],
    [{ TIDEGATE_MASTER_KEYS: 'abc' }, /TIDEGATE_MASTER_KEYS.*32 bytes/],
    [{ ASN_MMDB: '/nowhere' }, 'ASN_MMDB'],
    [
      { PORT: '8788', CONSOLE_PORT: '8788' },
      'CONSOLE_PORT must differ from PORT, got 8788 for both',
    ],
    [
      { METRICS_PORT: '99', SCHEMAS_PORT: '99' },
      'SCHEMAS_PORT must differ from METRICS_PORT, got 99',
    ],
    [
      { KAFKA_REPLICATION_FACTOR: '2', KAFKA_MIN_INSYNC_REPLICAS: '3' },
      'KAFKA_MIN_INSYNC_REPLICAS must be at most KAFKA_REPLICATION_FACTOR (2), got "3"',
    ],
    [{ HOST: '999.1.1.1' }, 'HOST must be an IP address or a host name, got "999.1.1.1"'],
    [{ HOST: 'fe80::1%eth0' }, 'PUBLIC_URL is not set, and browsers cannot use HOST fe80::1%eth0'],
    [
      { SCHEMA_REGISTRY_URL: 'ftp://u:hunter2@host' },
      'SCHEMA_REGISTRY_URL must start with http:// or https://',
    ],
    [{ ATTESTED_APPS_FILE: '/nowhere' }, 'ATTESTED_APPS_FILE: /nowhere cannot be read (ENOENT)'],
    [{ REPUTATION_LISTS: 'spam=/nowhere' }, 'failed to read a file of REPUTATION_LISTS'],
    [{ ANONYMOUS_MMDB: 'package.json' }, 'failed to read CITY_MMDB, ASN_MMDB or ANONYMOUS_MMDB'],
    [{ ATTESTED_APPS_FILE: 'package.json' }, 'ATTESTED_APPS_FILE is not valid'],
    [
      { KAFKA_SECURITY_PROTOCOL: 'SSL', KAFKA_SSL_CA_FILE: 'package.json' },
      'KAFKA_SSL_*_FILE must be PEM, and the key must belong to the certificate',
    ],
    [
      { DATABASE_URL: '', DATABSE_URL: 'postgres://host' },
      'DATABSE_URL is not a setting: did you mean DATABASE_URL?',
    ],
  ])('are named with the expected value: %j', async (changes, message) => {
    const failure = await outcome(
      checkServerSettings({ env: { ...base, ...changes }, roles: 'api,scoring' }),
    )
    expect(failure).toMatch(message)
    expect(failure).not.toContain('hunter2')
  })

  it('are all reported at once', async () => {
    const env = {
      DATABASE_URL: 'postgres://h/x?port=0',
      KAFKA_SASL_MECHANISM: 'PLAIN',
      ATTESTED_APPS_FILE: '/none',
    }
    const failure = await outcome(readServerSettings({ env, roles: 'scoring' }))
    for (const part of ['DATABASE_URL', 'TIDEGATE_MASTER_KEYS', 'KAFKA_SASL', 'ATTESTED_APPS_FILE'])
      expect(failure).toContain(`\n  ${part}`)
  })
})

describe('variables named almost like a setting', () => {
  it.each([
    ['KAFKA_BROKER', 'KAFKA_BROKERS'],
    ['KAFAK_BROKERS', 'KAFKA_BROKERS'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['TRUSTED_PROXYS', 'TRUSTED_PROXIES'],
    ['LOGLEVEL', 'LOG_LEVEL'],
    ['tidegate_master_keys', 'TIDEGATE_MASTER_KEYS'],
    ['TIDEGATE_MASTER_KEY_FILE', 'TIDEGATE_MASTER_KEYS_FILE'],
  ])('%s: did you mean %s', (name, likely) => {
    expect(misspelledSettings({ [name]: 'x' })).toEqual([
      `${name} is not a setting: did you mean ${likely}?`,
    ])
    expect(misspelledSettings({ [name]: 'x', [likely]: 'y' })).toEqual([])
  })

  it('do not include those of an ordinary environment', () => {
    const ordinary = `PATH HOME HOSTNAME HOSTS PORTS SHELL USER LOGNAME LANG PWD TERM NODE_ENV NODE_OPTIONS CI DEBUG
      PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE PGSSLMODE PGSSLROOTCERT PGOPTIONS SSL_CERT_FILE XDG_DATA_DIRS
      XDG_DATA_HOME http_proxy NO_PROXY KUBERNETES_PORT KUBERNETES_SERVICE_HOST TIDEGATE_PORT TIDEGATE_CONSOLE_PORT
      TIDEGATE_URL TIDEGATE_SECRET_KEY TIDEGATE_API_PORT TIDEGATE_SERVICE_PORT KAFKA_PORT KAFKA_HEAP_OPTS
      OTEL_EXPORTER_OTLP_TIMEOUT OTEL_EXPORTER_OTLP_CERTIFICATE OTEL_EXPORTER_OTLP_TRACES_HEADERS OTEL_LOGS_EXPORTER
      OTEL_METRIC_EXPORT_TIMEOUT OTEL_LOG_LEVEL OTEL_BSP_SCHEDULE_DELAY npm_lifecycle_event npm_config_cache`
    const env = Object.fromEntries(ordinary.split(/\s+/).map((name) => [name, 'x']))
    expect(misspelledSettings(env)).toEqual([])
  })
})
