import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { readConfig } from '../../infra/config.ts'
import { readMasterKeys } from '../../infra/crypto/master-keys.ts'
import { createRandom } from '../../infra/random.ts'
import { createLogger } from '../../infra/telemetry.ts'
import type { KeyType } from '../../schemas/events.ts'
import { asOperator } from '../../services/cli/operator/operate.ts'
import { createOrganization, issueApiKey } from '../../services/organizations/commands.ts'
import { type Core, openCore } from '../../services/server/dependencies.ts'
import { type CliResult, cli } from './cli.ts'
import { validatingFetch } from './described.ts'
import { kafkaIsUp } from './kafka.ts'
import { refuseSecretKeys, sweepTopics } from './key-sweep.ts'
import { deleteTopics } from './logs.ts'
import { isLong } from './long.ts'
import { needs } from './needs.ts'
import { createTestDatabase, type TestDatabase } from './postgres.ts'
import { type ServerProcess, startServerProcess } from './server-process.ts'

export interface ClusterOptions {
  log: 'postgres' | 'kafka'
  /** How many servers; default 2. */
  processes?: number
  env?: Record<string, string>
  /** Default: all roles in every process. */
  roles?: string
  /** Default: a new one on the Postgres of the test run. */
  database?: Pick<TestDatabase, 'url' | 'drop'>
}

export interface IssuedKey {
  id: string
  /** The whole key. */
  key: string
}

export interface Owner {
  organizationId: string
  slug: string
  /** A live secret key that may do everything. */
  secret: IssuedKey
  /** A live browser key that works from any origin. */
  publishable: IssuedKey
}

/** Several servers on one database and one log. */
export interface Cluster {
  baseUrls: string[]
  owner: Owner
  /** What every process on this database and log is started with. */
  settings: Readonly<Record<string, string>>
  /** fetch of a path of one server; throws when the response differs from that server's /openapi.json. */
  fetch(index: number, path: string, init?: RequestInit): Promise<Response>
  /** Runs `tidegate ...args` on the same database and log. */
  cli(args: string[]): Promise<CliResult>
  /** Runs an operator command and returns the `data` it prints; throws when it fails. */
  operate<Data>(...args: string[]): Promise<Data>
  /** A new organization with its keys. */
  organization(): Promise<Owner>
  /** SIGKILL; nothing is cleaned up. */
  kill(index: number): Promise<void>
  /** What each server printed so far. */
  outputs(): string[]
  /** Starts one more server with these roles; `stop` ends it too. */
  serve(roles: string): Promise<ServerProcess>
  /** Stops what is left, and removes the database and the topics. Rejects when a secret key is in any of them. */
  stop(): Promise<void>
}

/** Returns the logs for tests whose subject is the log: both in long files. Others use the embedded one. */
export function clusterLogs(): ClusterOptions['log'][] {
  return isLong && needs('kafka').areMet ? ['postgres', 'kafka'] : ['postgres']
}

/** Starts the servers and makes the first organization and its keys with the operator's commands. */
export async function startCluster({
  log,
  processes = 2,
  env,
  roles,
  ...given
}: ClusterOptions): Promise<Cluster> {
  const database = given.database ?? (await createTestDatabase())
  const kafka = log === 'kafka' ? await kafkaPlace() : undefined
  const settings = {
    DATABASE_URL: database.url,
    TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
    KAFKA_BROKERS: kafka?.brokers ?? '',
    KAFKA_TOPIC_PREFIX: kafka?.prefix ?? '',
    ...env,
  }
  const args = ['serve', ...(roles ? ['--roles', roles] : [])]
  const servers: ServerProcess[] = []
  try {
    for (let i = 0; i < processes; i++) servers.push(await startServerProcess(args, settings))
  } catch (error) {
    // Nobody else knows of those that did start.
    await Promise.all(servers.map((server) => server.end('SIGKILL')))
    throw error
  }
  const commands = operator(settings)
  const baseUrls = servers.map(({ baseUrl }) => baseUrl)
  const fetches = await Promise.all(baseUrls.map(validatingFetch))
  return {
    baseUrls,
    owner: await commands.organization(),
    settings,
    ...commands,
    async fetch(index, path, init) {
      const checked = fetches[index]
      if (!checked) throw new Error(`there is no server ${index}`)
      return checked(`${baseUrls[index]}${path}`, init)
    },
    async kill(index) {
      await servers[index]?.end('SIGKILL')
    },
    outputs: () => servers.map(({ output }) => output()),
    async serve(ofRoles) {
      const server = await startServerProcess(['serve', '--roles', ofRoles], settings)
      servers.push(server)
      return server
    },
    async stop() {
      await Promise.all(servers.map((server) => server.end('SIGTERM')))
      if (kafka) await sweepTopics(kafka)
      if (kafka) await deleteTopics(kafka.brokers.split(','), kafka.prefix)
      await database.drop()
      for (const { output } of servers) refuseSecretKeys('the output of a server', output())
    },
  }
}

/** The broker of the test run, and a prefix that nobody else has. */
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
    longQueries: true,
  })
}

/** The operator's commands on the database and log of the settings. */
export function operator(
  settings: Record<string, string>,
): Pick<Cluster, 'cli' | 'operate' | 'organization'> {
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
