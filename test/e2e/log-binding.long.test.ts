import { randomBytes } from 'node:crypto'
import { cp, rm } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { openKafkaImport } from '../../infra/log/kafka/import.ts'
import { openKafkaLog } from '../../infra/log/kafka/log.ts'
import type { LogRecord } from '../../infra/log/port.ts'
import { readTopicToEnd } from '../../infra/log/read-topic.ts'
import { eventTopics } from '../../schemas/events.ts'
import {
  type Cluster,
  createInstallation,
  type Installation,
  kafkaPlace,
  operator,
  readinessOf,
  startCluster,
} from '../support/cluster.ts'
import { type Visit, visitAs, visitorOf } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { type KafkaBroker, startKafkaBroker } from '../support/kafka-broker.ts'
import { deleteRecords, deleteTopics } from '../support/logs.ts'
import { needs } from '../support/needs.ts'
import { documentedSteps } from '../support/printed-commands.ts'
import { silent } from '../support/projections.ts'
import type { ServerProcess } from '../support/server-process.ts'

const { describe, it } = needs('kafka')
const patient = { timeoutMs: 60_000, intervalMs: 200 }
const topic = 'tidegate.collect.v1'

interface Place {
  brokers: string
  prefix: string
}

const settingsOf = ({ brokers, prefix }: Place) => ({
  KAFKA_BROKERS: brokers,
  KAFKA_TOPIC_PREFIX: prefix,
})
const deleteAll = ({ brokers, prefix }: Place) => deleteTopics(brokers.split(','), prefix)

async function adoptStep(): Promise<string[]> {
  const [adopt = []] = await documentedSteps('docs/operate/kafka.md', 'Another log')
  expect(adopt).toEqual(['migrate', '--adopt-log'])
  return adopt
}

describe('a database that read the embedded log', () => {
  let installation: Installation
  let place: Place

  beforeAll(async () => {
    place = await kafkaPlace()
    installation = await createInstallation()
    const server = await installation.serve('projections')
    await installation.organization()
    await server.end('SIGTERM')
  }, 60_000)
  afterAll(async () => {
    await installation?.stop()
    await deleteAll(place)
  })

  it('is not served from a Kafka, and no command runs on it there', async () => {
    const refusal = /it was filled from embedded log \S+, and the settings point to Kafka cluster/
    const env = settingsOf(place)
    await expect(installation.serve('projections', { env })).rejects.toThrow(refusal)
    const { cli } = operator({ ...installation.settings, ...env })
    expect(await cli(['org', 'list'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(refusal),
    })
    // More was read of the embedded log than is on Kafka.
    for (const [args, message] of [
      [['migrate'], refusal],
      [await adoptStep(), /The log ends at offset 0 of .*, but was already read up to/],
    ] as const)
      expect(await cli([...args])).toMatchObject({
        code: 1,
        stdout: expect.stringMatching(message),
      })
  }, 60_000)

  it('is served from its own log again', async () => {
    const { baseUrl } = await installation.serve('projections')
    expect(await readinessOf(baseUrl)).toBe('200 ok')
  }, 60_000)
})

describe('a Kafka whose records are mirrored to another', () => {
  let cluster: Cluster
  let mirror: Place
  let visitor: string

  beforeAll(async () => {
    mirror = await kafkaPlace()
    cluster = await startCluster({ log: 'kafka', isEmpty: true })
    for (const device of [1, 2, 3])
      visitor = await visitorOf(cluster, await visitAs(cluster, device))
  }, 120_000)
  afterAll(async () => {
    await cluster?.stop()
    await deleteAll(mirror)
  })

  async function mirrorTopics(): Promise<void> {
    const { KAFKA_BROKERS = '', KAFKA_TOPIC_PREFIX: topicPrefix = '' } = cluster.settings
    const options = { brokers: KAFKA_BROKERS.split(','), logger: silent }
    const from = await openKafkaLog({ ...options, topicPrefix })
    const to = await openKafkaLog({ ...options, topicPrefix: mirror.prefix })
    const copy = await openKafkaImport({ ...options, topicPrefix: mirror.prefix })
    for (const topic of new Set(Object.values(eventTopics))) {
      await to.ensureTopics([{ topic, partitions: (await from.endPositions(topic)).length }])
      const records: LogRecord[] = []
      const handle = (batches: { records: LogRecord[] }[]) => {
        for (const batch of batches) records.push(...batch.records)
      }
      await readTopicToEnd({ log: from, topic, handle })
      await copy.append(records.toSorted((a, b) => a.offset - b.offset))
      expect(await to.endPositions(topic)).toEqual(await from.endPositions(topic))
    }
    await Promise.all([from.close(), to.close(), copy.close()])
  }

  const connected = (env: Record<string, string>) =>
    operator({ ...cluster.settings, ...env }).cli(['config', 'check', '--connect'])

  it('is tried by config check, with the database and the master keys', async () => {
    expect(await connected({})).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(
        /^database: PostgreSQL \d+.*\nlog: Kafka cluster .*\nmaster keys: match the database$/m,
      ),
    })
    const wrongKeys = randomBytes(32).toString('base64')
    const closed = await connected({ TIDEGATE_MASTER_KEYS: wrongKeys })
    expect(closed).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(
        /^log: Kafka cluster .*\nmaster keys: failed: The master keys do not match/m,
      ),
    })
    expect(closed.stdout + closed.stderr).not.toContain(wrongKeys)
    expect(await connected({ KAFKA_BROKERS: '127.0.0.1:1' })).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(
        /^database: PostgreSQL .*\nlog: failed: .*\nmaster keys: match the database/m,
      ),
    })
  }, 90_000)

  it('is served from the mirror once that is adopted as documented', async () => {
    const sessions = () => cluster.read('/v1/sessions?limit=100')
    const before = await sessions()
    const first = { ...cluster.settings }
    await mirrorTopics()
    Object.assign(cluster.settings, settingsOf(mirror))
    const refusal = /it was filled from Kafka cluster .*, and the settings point to Kafka cluster/
    await expect(cluster.replace()).rejects.toThrow(refusal)
    expect((await connected({})).stdout).toMatch(/^log: failed: The database belongs/m)

    expect(await cluster.cli(await adoptStep())).toMatchObject({ code: 0 })
    await cluster.replace()
    expect(await sessions()).toEqual(before)
    expect(await cluster.readiness()).toBe('200 ok')
    expect(await visitorOf(cluster, await visitAs(cluster, 4))).not.toBe(visitor)
    expect(await sessions()).toHaveLength(4)
    await expect(cluster.serve(undefined, { env: first })).rejects.toThrow(refusal)
  }, 120_000)
})

describe('two databases on one Kafka prefix', () => {
  const installations: Installation[] = []
  let place: Place
  let production: Installation
  let staging: Installation

  beforeAll(async () => {
    place = await kafkaPlace()
    production = await installationOn(place)
    staging = await installationOn(place)
  }, 120_000)
  afterAll(async () => {
    await Promise.all(installations.map((one) => one.stop()))
    await deleteAll(place)
  })

  async function installationOn(shared: Place): Promise<Installation> {
    const installation = await createInstallation({ env: settingsOf(shared) })
    installations.push(installation)
    return installation
  }

  const start = ({ serve }: Installation, ...args: string[]) => serve('collect', { args })
  const nameOf = ({ settings }: Installation) =>
    new URL(settings.DATABASE_URL ?? '').pathname.slice(1)
  const isReady = async ({ baseUrl }: ServerProcess) =>
    expect(await readinessOf(baseUrl)).toBe('200 ok')

  async function isStopped(server: ServerProcess, holder: Installation): Promise<void> {
    const said = /the server is stopping: The log belongs to another database/
    await eventually(() => expect(server.output()).toMatch(said), patient)
    expect(server.output()).toContain(nameOf(holder))
    // The signal comes to a process that is stopping or gone.
    expect(await server.exit).toBe(1)
  }

  it('are not both served: the later one stops itself and names the holder', async () => {
    // Processes of one installation share the claim.
    const [first, second] = [await start(production), await start(production)]
    const refusal = `ended with 1 .*The log belongs to another database: .*${nameOf(production)}`
    await expect(start(staging)).rejects.toThrow(new RegExp(refusal, 's'))
    await isReady(first)
    await isReady(second)
    // A crash leaves the claim to the same database.
    await Promise.all([first.end('SIGKILL'), second.end('SIGKILL')])
    await isReady(await start(production))
  }, 180_000)

  it('change places by a take-over, which stops the servers of the former one', async () => {
    const former = await start(production)
    const next = await start(staging, '--take-over-log')
    await isStopped(former, staging)
    await isReady(next)
    await expect(start(production)).rejects.toThrow(/The log belongs to another database/)
    // A restore takes the log over from the lost database.
    expect(await production.cli(['restore'])).toMatchObject({ code: 0 })
    await isStopped(next, production)
    await isReady(await start(production))
  }, 240_000)

  it('start at once on a new prefix, and one of them is refused', async () => {
    const fresh = { ...place, prefix: `${place.prefix}new.` }
    const both = [await installationOn(fresh), await installationOn(fresh)]
    const outcomes = await Promise.allSettled(both.map((one) => start(one)))
    const started = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const running = () =>
      started.filter(({ output }) => !output().includes('the server is stopping'))
    await eventually(() => expect(running()).toHaveLength(1), patient)
  }, 180_000)
})

needs('kafka-jars').describe('a Kafka that comes back as an older copy of itself', () => {
  let broker: KafkaBroker
  let cluster: Cluster
  let collector: ServerProcess
  const acknowledged: Visit[] = []

  beforeAll(async () => {
    broker = await startKafkaBroker({ logger: silent })
    cluster = await startCluster({ env: { KAFKA_BROKERS: broker.brokers } })
    collector = await cluster.serve('collect')
  }, 300_000)
  afterAll(async () => {
    await cluster?.stop()
    await broker?.stop()
  })

  const servers = () => [cluster.baseUrl, collector.baseUrl]
  const visit = async (baseUrl: string) => {
    acknowledged.push(await visitAs({ baseUrl, owner: cluster.owner }, acknowledged.length))
  }
  async function visits(): Promise<void> {
    for (let i = 0; i < 8; i++) await visit(servers()[i % 2] ?? '')
  }
  async function refused(baseUrl: string): Promise<void> {
    const before = acknowledged.length
    await visit(baseUrl).catch(() => {})
    expect(acknowledged).toHaveLength(before)
  }
  const copyOf = (name: string) => path.join(broker.dataDir, name)
  const save = (name: string) => cp(copyOf('log'), copyOf(name), { recursive: true })
  async function replaceBy(name: string): Promise<void> {
    await rm(copyOf('log'), { recursive: true })
    await cp(copyOf(name), copyOf('log'), { recursive: true })
  }
  const allAreRead = () =>
    eventually(async () => {
      for (const { sessionId } of acknowledged) await cluster.read(`/v1/sessions/${sessionId}`)
    })

  it('takes no appends until a start finds all records there, and loses nothing', async () => {
    await visits()
    await broker.kill()
    await save('older')
    await broker.restart()
    await eventually(async () => expect(await cluster.readiness()).toBe('200 ok'), patient)
    await visits()
    await allAreRead()

    await broker.kill()
    await save('whole')
    // Both find that it is away.
    await Promise.all(servers().map(refused))
    await replaceBy('older')
    await broker.restart()
    const notReady = /^503 Not ready: .*log_position \(.*restored from an older copy/
    for (const at of servers())
      await eventually(async () => {
        await refused(at)
        expect(await readinessOf(at)).toMatch(notReady)
      }, patient)

    // The log outgrows what was read of it.
    const log = await openKafkaLog({ brokers: [broker.brokers], logger: silent })
    const foreign = { topic, value: Buffer.from('foreign'), headers: {} }
    await log.append(Array.from({ length: 500 }, (_, i) => ({ ...foreign, key: `key${i}` })))
    await log.close()
    for (const at of servers()) {
      await refused(at)
      expect(await readinessOf(at)).toMatch(notReady)
    }
    await expect(cluster.replace()).rejects.toThrow(/restored from an older copy/)

    await broker.kill()
    await replaceBy('whole')
    await broker.restart()
    // It saw the damage, and may have stood still before.
    await refused(collector.baseUrl)
    await collector.end('SIGTERM')
    await cluster.replace()
    collector = await cluster.serve('collect')
    for (const at of servers()) await visit(at)
    expect(await cluster.readiness()).toBe('200 ok')
    await allAreRead()
  }, 600_000)
})

describe('records that have expired', () => {
  it('are not missing', async () => {
    const cluster = await startCluster({ log: 'kafka' })
    const { KAFKA_BROKERS = '', KAFKA_TOPIC_PREFIX = '' } = cluster.settings
    for (let device = 0; device < 4; device++) await visitAs(cluster, device)
    await deleteRecords(KAFKA_BROKERS.split(','), KAFKA_TOPIC_PREFIX + topic)
    const deletedAt = Date.now()
    const marked = `select from tidegate.bound_log where (marks->>'time')::float8 > $1`
    await eventually(async () => {
      expect((await cluster.pool.query(marked, [deletedAt])).rows).not.toHaveLength(0)
    }, patient)
    expect(await cluster.readiness()).toBe('200 ok')
    await visitAs(cluster, 4)
    await cluster.replace()
    await visitAs(cluster, 5)
    expect(await cluster.readiness()).toBe('200 ok')
    await cluster.stop()
  }, 300_000)
})
