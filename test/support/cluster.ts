import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { inject } from 'vitest'
import { readConfig } from '../../infra/config.ts'
import { readMasterKeys } from '../../infra/crypto/master-keys.ts'
import { createCodec } from '../../infra/event-store/codec.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import type { EventLog, Position } from '../../infra/log/port.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { createRandom } from '../../infra/random.ts'
import { createLogger } from '../../infra/telemetry.ts'
import type { KeyType } from '../../schemas/events.ts'
import { asOperator } from '../../services/cli/operator/run.ts'
import { createOrganization, issueApiKey } from '../../services/organizations/commands.ts'
import { type Core, openCore, openLog } from '../../services/server/dependencies.ts'
import { type CliResult, cli } from './cli.ts'
import { validatingFetch } from './described.ts'
import { kafkaIsUp } from './kafka.ts'
import { refuseSecretKeys, sweepTopics } from './key-sweep.ts'
import { deleteTopics } from './logs.ts'
import { isLong } from './long.ts'
import { needs } from './needs.ts'
import { pastMeta } from './past-events.ts'
import { createTestDatabase, type TestDatabase } from './postgres.ts'
import { silent, testCause } from './projections.ts'
import { type ServerProcess, startServerProcess } from './server-process.ts'

export type LogName = 'postgres' | 'kafka'

export interface InstallationOptions {
  /** Default: postgres. */
  log?: LogName | undefined
  /** Settings in addition to database, log and master keys. */
  env?: Record<string, string>
  /** Default: a new database on the Postgres of the test run. */
  database?: Pick<TestDatabase, 'url' | 'drop'>
  /** True if the first server or command creates the tables, which takes longer. */
  isEmpty?: boolean
}

export interface ClusterOptions extends InstallationOptions {
  /** Number of servers. Default: 1. */
  processes?: number
  /** Default: all roles in every process. */
  roles?: string
}

export interface IssuedKey {
  id: string
  /** Full key. */
  key: string
}

export interface Owner {
  organizationId: string
  slug: string
  /** Live secret key with all scopes. */
  secret: IssuedKey
  /** Live browser key that works from any origin. */
  publishable: IssuedKey
}

export interface Endpoint {
  id: string
  signing_secret: string
}

interface Operator {
  /** Runs `tidegate ...args` on the same database and log. */
  cli(args: string[]): Promise<CliResult>
  /** Runs an operator command and returns the `data` it prints; throws when it fails. */
  operate<Data>(...args: string[]): Promise<Data>
  /** Creates an organization with its keys. */
  organization(): Promise<Owner>
}

/** Database and log, with the servers that a test starts on them. */
export interface Installation extends Operator {
  /** Settings of every process. Changes apply to processes that start later. */
  settings: Record<string, string>
  /** Connections to the database. */
  pool: pg.Pool
  /** Returns the log, as opened by another program. `stop` closes it. */
  log(): Promise<EventLog>
  /** Appends events unencrypted, as early servers did. */
  append(events: DomainEvent[]): Promise<Position[]>
  /** Starts one more server, of all roles unless some are named; `stop` ends it too. */
  serve(
    roles?: string,
    more?: { args?: string[]; env?: Record<string, string> | undefined },
  ): Promise<ServerProcess>
  /** Stops all processes, and deletes the database and topics. Rejects if any of them contains a secret key. */
  stop(): Promise<void>
}

export interface ApiRequest {
  method?: string
  body?: object
  headers?: Record<string, string>
  /** Default: the owner's secret key. */
  key?: string
  /** Index of the server; default 0. */
  server?: number
}

export interface ApiAnswer<Data> {
  status: number
  headers: Headers
  data: Data
  error?: { code: string; message: string; details?: Record<string, unknown> }
  pagination?: { next_cursor?: string }
}

/** Servers on the same database and log. */
export interface Cluster extends Installation {
  baseUrls: string[]
  /** URL of the first server. */
  readonly baseUrl: string
  owner: Owner
  /** Fetches a path of a server. Throws if the response differs from that server's /openapi.json. */
  fetch(index: number, path: string, init?: RequestInit): Promise<Response>
  /** Sends a request like the owner's backend, checked like `fetch`. */
  ask<Data = unknown>(path: string, asked?: ApiRequest): Promise<ApiAnswer<Data>>
  /** Returns `data` of a request that succeeds. */
  read<Data = unknown>(path: string, asked?: ApiRequest): Promise<Data>
  /** Creates a webhook endpoint, by default for the owner. */
  createEndpoint(url: string, event_types: string[], of?: Owner): Promise<Endpoint>
  /** Creates a service that agents can sign up for, with approvals sent to the URL. Returns its id. */
  createGateService(url: string, changes?: object): Promise<string>
  /** Status of /readyz and the message of its error, or `ok`. */
  readiness(index?: number): Promise<string>
  /** SIGKILL; nothing is cleaned up. */
  kill(index: number): Promise<void>
  /** Sends SIGTERM. Resolves with the exit code. */
  end(index?: number): Promise<number | null>
  /** Stops a server, and starts another with the current settings. */
  replace(index?: number, other?: { roles?: string; env?: Record<string, string> }): Promise<void>
  /** Returns the output of each server so far. */
  outputs(): string[]
}

/** Returns the logs for tests whose subject is the log: both in long files. Others use the embedded one. */
export function clusterLogs(): LogName[] {
  return isLong && needs('kafka').areMet ? ['postgres', 'kafka'] : ['postgres']
}

export async function createInstallation({
  log = 'postgres',
  env,
  isEmpty = false,
  ...given
}: InstallationOptions = {}): Promise<Installation> {
  const database = given.database ?? (await createTestDatabase({ empty: isEmpty }))
  const kafka = log === 'kafka' ? await kafkaPlace() : undefined
  const settings: Record<string, string> = {
    DATABASE_URL: database.url,
    TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
    KAFKA_BROKERS: kafka?.brokers ?? '',
    KAFKA_TOPIC_PREFIX: kafka?.prefix ?? '',
    ...env,
  }
  const pool = createPool({ url: database.url, max: 4, applicationName: 'test' })
  const servers: ServerProcess[] = []
  const url = database.url
  let opened: Promise<EventLog> | undefined
  const openOnce = () => {
    opened ??= openLog({ config: readConfig(settings), pool, url, logger: silent })
    return opened
  }
  return {
    settings,
    pool,
    log: openOnce,
    append: async (events) => appendInParts(await openOnce(), events),
    ...operator(settings),
    async serve(roles, { args = [], env: more } = {}) {
      const named = roles ? ['--roles', roles] : []
      const server = await startServerProcess(['serve', ...named, ...args], {
        ...settings,
        ...more,
      })
      servers.push(server)
      return server
    },
    async stop() {
      await Promise.all(servers.map((server) => server.end('SIGTERM')))
      await (await opened)?.close()
      if (kafka) await sweepTopics(kafka)
      if (kafka) await deleteTopics(kafka.brokers.split(','), kafka.prefix)
      await pool.end()
      await database.drop()
      for (const { output } of servers) refuseSecretKeys('the output of a server', output())
    },
  }
}

const codec = createCodec()
// Small enough for a busy machine to confirm in time.
const atOnce = 100

async function appendInParts(log: EventLog, events: DomainEvent[]): Promise<Position[]> {
  const records = events.map((event) => codec.toRecordWithCause(event, pastMeta(event), testCause))
  const placed: Position[] = []
  for (let from = 0; from < records.length; from += atOnce)
    placed.push(...(await log.append(records.slice(from, from + atOnce))))
  return placed
}

/** Starts the servers, and creates the first organization and its keys like the operator's commands. */
export async function startCluster({
  processes = 1,
  roles,
  ...options
}: ClusterOptions = {}): Promise<Cluster> {
  const installation = await createInstallation(options)
  const servers: ServerProcess[] = []
  try {
    for (let i = 0; i < processes; i++) servers.push(await installation.serve(roles))
    return clusterOf(installation, { servers, roles, owner: await installation.organization() })
  } catch (error) {
    await installation.stop()
    throw error
  }
}

interface Started {
  servers: ServerProcess[]
  roles: string | undefined
  owner: Owner
}

function clusterOf(installation: Installation, { servers, roles, owner }: Started): Cluster {
  const baseUrls = servers.map(({ baseUrl }) => baseUrl)
  const described = new Map<string, Promise<typeof fetch>>()

  async function checkedFetch(index: number, path: string, init?: RequestInit): Promise<Response> {
    const baseUrl = baseUrls[index]
    if (baseUrl === undefined) throw new Error(`there is no server ${index}`)
    const checked = described.get(baseUrl) ?? validatingFetch(baseUrl)
    described.set(baseUrl, checked)
    return (await checked)(`${baseUrl}${path}`, init)
  }

  async function ask<Data>(path: string, asked: ApiRequest = {}): Promise<ApiAnswer<Data>> {
    const { key = cluster.owner.secret.key, body } = asked
    const response = await checkedFetch(asked.server ?? 0, path, {
      method: asked.method ?? (body ? 'POST' : 'GET'),
      headers: {
        authorization: `Bearer ${key}`,
        ...(body && { 'content-type': 'application/json' }),
        ...asked.headers,
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    const { status, headers } = response
    return { status, headers, ...JSON.parse(await response.text()) }
  }

  const cluster: Cluster = {
    ...installation,
    baseUrls,
    get baseUrl() {
      return baseUrls[0] ?? ''
    },
    owner,
    fetch: checkedFetch,
    ask,
    async read<Data>(path: string, asked?: ApiRequest) {
      const { status, data, error } = await ask<Data>(path, asked)
      if (error) throw new Error(`${path}: ${status} ${JSON.stringify(error)}`)
      return data
    },
    createEndpoint: (url, event_types, { organizationId, secret } = cluster.owner) =>
      cluster.read(`/v1/organizations/${organizationId}/webhooks/endpoints`, {
        key: secret.key,
        body: { name: 'Receiver', url, event_types },
      }),
    async createGateService(url, changes) {
      const { id } = await cluster.createEndpoint(url, ['gate.session.approved'])
      const body = { ...gateService(id), ...changes }
      return (await cluster.read<{ id: string }>('/v1/gate/services', { body })).id
    },
    readiness: (index = 0) => readinessOf(baseUrls[index] ?? ''),
    async kill(index) {
      await servers[index]?.end('SIGKILL')
    },
    end: async (index = 0) => (await servers[index]?.end('SIGTERM')) ?? null,
    async replace(index = 0, other = {}) {
      await cluster.end(index)
      const server = await installation.serve(other.roles ?? roles, { env: other.env })
      servers[index] = server
      baseUrls[index] = server.baseUrl
    },
    outputs: () => servers.map(({ output }) => output()),
  }
  return cluster
}

const gateService = (webhook_endpoint_id: string) => ({
  id: `acme-${randomBytes(4).toString('hex')}`,
  name: 'Acme Mail',
  description: 'Mail for agents.',
  website: 'https://acme.example',
  webhook_endpoint_id,
  discoverable: true,
  dashboard_login_url: 'https://acme.example/auth/gate',
  env_vars: [{ name: 'API key', key: 'ACME_API_KEY', secret: true }],
})

/** Returns the status of /readyz with the message of its error, or `ok`. */
export async function readinessOf(baseUrl: string): Promise<string> {
  const answer = await fetch(`${baseUrl}/readyz`)
  const { error }: { error?: { message: string } } = JSON.parse(await answer.text())
  return `${answer.status} ${error?.message ?? 'ok'}`
}

/** Returns the broker of the test run, and a unique topic prefix. */
export async function kafkaPlace() {
  const brokers = inject('kafkaBrokers')
  if (brokers === null) throw new Error('there is no Kafka')
  await kafkaIsUp(brokers)
  return { brokers, prefix: `cluster${randomBytes(4).toString('hex')}.` }
}

async function openSettings(settings: Record<string, string>): Promise<Core> {
  const config = readConfig({ ...process.env, ...settings })
  return openCore({
    config,
    databaseUrl: config.DATABASE_URL ?? '',
    masterKeys: (await readMasterKeys(config)) ?? '',
    logger: createLogger('error', process.stderr),
    clock: Date.now,
    random: createRandom(),
    allowsLongQueries: true,
  })
}

/** The operator's commands on the database and log of the settings. */
export function operator(settings: Record<string, string>): Operator {
  const run = (args: string[]) => cli(args, settings)

  async function operate<Data>(...args: string[]): Promise<Data> {
    const { code, stdout, stderr } = await run([...args, '--json'])
    if (code !== 0)
      throw new Error(`tidegate ${args.join(' ')} ended with ${code}: ${stdout}${stderr}`)
    const { data }: { data: Data } = JSON.parse(stdout)
    return data
  }

  // In this process, because each command started as a process costs more than a second of CPU.
  async function organization(): Promise<Owner> {
    const core = await openSettings(settings)
    try {
      const slug = `cluster-${randomBytes(4).toString('hex')}`
      const { organizationId } = await createOrganization(asOperator(core, 'org create'), {
        name: 'Cluster',
        slug,
      })
      const issue = async (key: {
        name: string
        type: KeyType
        scopes?: string[]
      }): Promise<IssuedKey> => {
        const command = { ...key, organizationId, environment: 'live', by: 'operator' } as const
        const issued = await issueApiKey(asOperator(core, 'keys create'), command)
        return { id: issued.keyId, key: issued.revealedKey }
      }
      const [secret, publishable] = await Promise.all([
        issue({ name: 'Owner', type: 'secret', scopes: ['*'] }),
        issue({ name: 'Page', type: 'publishable' }),
      ])
      return { organizationId, slug, secret, publishable }
    } finally {
      await core.close()
    }
  }

  return { cli: run, operate, organization }
}
