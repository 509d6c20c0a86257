import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import type { Logger } from 'pino'
import { freePort } from '../../infra/local/free-port.ts'
import { endChild } from './end-child.ts'
import { eventually } from './eventually.ts'
import { askBroker } from './kafka.ts'
import { works } from './needs/programs.ts'
import { root } from './test-projects.ts'

const run = promisify(execFile)

export interface KafkaBroker {
  brokers: string
  pid: number
  dataDir: string
  stop(): Promise<void>
  /** Sends SIGKILL and keeps the data. */
  kill(): Promise<void>
  /** Restarts the broker on its data after `kill`. */
  restart(): Promise<void>
}

interface Listener {
  name: string
  port: number
  protocol: string
  // Port under which clients reach the broker, for example through a proxy. Default: `port`.
  advertised?: number | undefined
}

export interface KafkaBrokerOptions {
  logger: Logger
  /** Default: the version in kafka-pom.xml. */
  version?: string
  folder?: string
  /** Folder that keeps the data between starts. Default: a temporary folder, which `stop` removes. */
  keepIn?: string
  port?: number
  signal?: AbortSignal
  /** Additional listeners for `listeners` and `listener.security.protocol.map`. */
  listeners?: Listener[]
  /** Additional lines of the properties, and arguments of the storage tool's `format`. */
  properties?: string
  format?: string[]
  /** Id of this node in a cluster, and the controller ports of all nodes. Start the nodes concurrently. */
  node?: { id: number; voters: Record<number, number> }
}

const memory = ['-Xms128m', '-Xmx384m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']
const jvm = [...memory, '-Dlog4j2.level=ERROR']
// Long, because a busy machine is not a failure.
const startTimeoutMs = 180_000

/** Starts Apache Kafka as a KRaft node on 127.0.0.1. Requires Java 17 and, the first time, Maven. */
export async function startKafkaBroker(options: KafkaBrokerOptions): Promise<KafkaBroker> {
  const { logger, version, folder = tmpdir(), keepIn, port = await freePort() } = options
  const classPath = path.join(await kafkaJars(version), '*')
  if (keepIn) await mkdir(keepIn, { recursive: true })
  const dataDir = keepIn ?? (await mkdtemp(path.join(folder, 'tidegate-kafka-')))
  const node = options.node ?? { id: 1, voters: { 1: await freePort() } }
  const config = path.join(dataDir, 'server.properties')
  await writeFile(
    config,
    `${properties({ ...options, port, node, dataDir })}${options.properties ?? ''}`,
  )
  const java = [...jvm, '-cp', classPath]
  const clusterId = Buffer.from('tidegate-local-1').toString('base64url')
  const format = ['kafka.tools.StorageTool', 'format', '-t', clusterId, '-c', config]
  const kept = keepIn ? ['--ignore-formatted'] : []
  await run('java', [...java, ...format, ...kept, ...(options.format ?? [])])
  // With `keepIn`, Ctrl-C in the terminal must not end the broker: the caller stops it after its last client.
  const launch = () =>
    spawn('java', [...java, 'kafka.Kafka', config], {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: keepIn !== undefined,
    })
  let broker = launch()
  const brokers = `127.0.0.1:${port}`
  async function stop(): Promise<void> {
    if (keepIn) return endChild(broker, 'SIGTERM')
    // The data is deleted, so no orderly shutdown is needed.
    await endChild(broker, 'SIGKILL')
    await rm(dataDir, { recursive: true, force: true })
  }
  try {
    await becomesReady(broker, brokers, options.signal)
  } catch (error) {
    await stop()
    throw error
  }
  logger.info({ brokers, pid: broker.pid }, 'kafka broker is up')
  return {
    brokers,
    dataDir,
    stop,
    get pid() {
      return broker.pid ?? 0
    },
    kill: () => endChild(broker, 'SIGKILL'),
    async restart() {
      broker = launch()
      await becomesReady(broker, brokers, options.signal)
    },
  }
}

async function becomesReady(
  broker: ChildProcess,
  brokers: string,
  signal?: AbortSignal,
): Promise<void> {
  let printed = ''
  for (const output of [broker.stdout, broker.stderr])
    output?.on('data', (chunk) => {
      printed = `${printed}${chunk}`.slice(-2000)
    })
  const isOver = () => signal?.aborted || broker.exitCode !== null
  const answered = async () => (isOver() ? false : askBroker(brokers).then(() => true))
  const patient = { timeoutMs: startTimeoutMs, intervalMs: 100 }
  if (!(await eventually(answered, patient).catch(() => false)))
    throw new Error(`Kafka did not start:\n${printed}`)
}

interface Places extends Pick<KafkaBrokerOptions, 'listeners'> {
  port: number
  node: NonNullable<KafkaBrokerOptions['node']>
  dataDir: string
}

const voters = ({ node }: Places): string =>
  Object.entries(node.voters)
    .map(([id, port]) => `${id}@127.0.0.1:${port}`)
    .join()

const addresses = (port: number, listeners: Pick<Listener, 'name' | 'port'>[]): string =>
  [{ name: 'PLAINTEXT', port }, ...listeners]
    .map((one) => `${one.name}://127.0.0.1:${one.port}`)
    .join()

const properties = ({ listeners = [], ...places }: Places): string => `
process.roles=broker,controller
node.id=${places.node.id}
controller.quorum.voters=${voters(places)}
listeners=CONTROLLER://127.0.0.1:${places.node.voters[places.node.id]},${addresses(places.port, listeners)}
advertised.listeners=${addresses(
  places.port,
  listeners.map(({ name, port, advertised = port }) => ({ name, port: advertised })),
)}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT${listeners.map(({ name, protocol }) => `,${name}:${protocol}`).join('')}
inter.broker.listener.name=PLAINTEXT
log.dirs=${path.join(places.dataDir, 'log')}
num.network.threads=2
num.io.threads=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=3
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
auto.create.topics.enable=false
`

const pom = path.join(root, 'test/support/kafka-pom.xml')
const oldestJava = 17

export async function canRunKafkaJars(): Promise<boolean> {
  const hasJars = existsSync(await jarsFolder()) || (await works('mvn', '-v'))
  return hasJars && (await javaVersion()) >= oldestJava
}

export async function kafkaJars(version?: string): Promise<string> {
  const folder = await jarsFolder(version)
  if (existsSync(folder)) return folder
  await mkdir(path.dirname(folder), { recursive: true })
  // Downloads to a temporary folder and renames it, so that aborted or concurrent runs leave no partial download.
  const fresh = await mkdtemp(`${folder}-`)
  const goal = [
    'dependency:copy-dependencies',
    '-DincludeScope=runtime',
    `-DoutputDirectory=${fresh}`,
  ]
  const property = version ? [`-Dkafka.version=${version}`] : []
  await run('mvn', ['-q', '-B', '-f', pom, ...property, ...goal], { maxBuffer: 16 * 1024 * 1024 })
  await rename(fresh, folder).catch(() => rm(fresh, { recursive: true }))
  return folder
}

async function jarsFolder(version = ''): Promise<string> {
  const digest = createHash('sha256')
    .update(await readFile(pom))
    .update(version)
    .digest('hex')
    .slice(0, 12)
  return path.join(root, '.cache/kafka-lib', digest)
}

async function javaVersion(): Promise<number> {
  const { stderr } = await run('java', ['-version']).catch(() => ({ stderr: '' }))
  return Number(/version "(\d+)/.exec(stderr)?.[1] ?? 0)
}
