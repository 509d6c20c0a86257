import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { afterAll, beforeAll, expect } from 'vitest'
import { openKafkaLog } from '../../infra/log/kafka/log.ts'
import type { EventLog, LogRecord, Position } from '../../infra/log/port.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { readTopicToEnd } from '../../infra/log/read-topic.ts'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { projections } from '../../services/server/dependencies.ts'
import { plannerGroup } from '../../services/webhooks/planner/planner.ts'
import { startCli } from '../support/cli.ts'
import { kafkaPlace, type Owner, operator } from '../support/cluster.ts'
import { readAs, type Visit, visitAs, visitorOf } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { deleteTopics } from '../support/logs.ts'
import { longAgo } from '../support/long-ago.ts'
import { needs } from '../support/needs.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { documentedSteps, sectionOf } from '../support/printed-commands.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { fastWebhooks } from '../support/webhook-world.ts'

const { describe, it } = needs('kafka')

const logger = pino({ level: 'silent' })
const collect = 'tidegate.collect.v1'
const sessions = 'tidegate.sessions.v1'
const patient = { timeoutMs: 30_000, intervalMs: 200 }
const devices = Array.from({ length: 10 }, (_, n) => n)
/** These come back without what their browser kept. */
const cleared = devices.filter((n) => n % 5 === 0)
const names = [...projections.map(({ name }) => name), 'scoring']
/** So many that a copy of them can be stopped half way. */
const repeats = 10_000

describe('an installation that moves to Kafka', () => {
  let database: TestDatabase
  let kafka: Awaited<ReturnType<typeof kafkaPlace>>
  let embedded: Record<string, string>
  let moved: Record<string, string>
  let server: ServerProcess
  let owner: Owner
  let receiver: WebhookReceiver
  let target: EventLog
  const visits: Visit[] = []
  let visitors: string[] = []
  let before: unknown[] = []
  let unscored: number[] = []
  let underWay: ReturnType<typeof createCollectClient>

  beforeAll(async () => {
    database = await createTestDatabase({ empty: true })
    kafka = await kafkaPlace()
    receiver = await startWebhookReceiver()
    embedded = {
      ...fastWebhooks,
      DATABASE_URL: database.url,
      TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
      KAFKA_BROKERS: '',
      TOPIC_PARTITIONS: '5',
    }
    // More partitions than the embedded log has: its number counts.
    moved = {
      ...embedded,
      KAFKA_BROKERS: kafka.brokers,
      KAFKA_TOPIC_PREFIX: kafka.prefix,
      TOPIC_PARTITIONS: '9',
    }
    target = await openKafkaLog({
      brokers: kafka.brokers.split(','),
      topicPrefix: kafka.prefix,
      logger,
    })
    server = await startServerProcess(['serve'], embedded)
    owner = await operator(embedded).organization()
  }, 90_000)

  afterAll(async () => {
    await server?.end('SIGTERM')
    await receiver?.close()
    await target?.close()
    await deleteTopics(kafka.brokers.split(','), kafka.prefix)
    await database?.drop()
  })

  const page = 'docs/operate/operations.md'
  const heading = 'From the embedded log to Kafka'
  /** As the docs print it, while servers run or after they were stopped. */
  async function copy(when: 'running' | 'stopped', ...args: string[]) {
    const [running = [], stopped = []] = await documentedSteps(page, heading)
    expect([running, stopped]).toEqual([
      [...stopped, '--no-bind'],
      ['log', 'copy', '--to', 'kafka'],
    ])
    return operator(moved).cli([...(when === 'running' ? running : stopped), ...args])
  }
  const visit = (device: number, continuity?: string) =>
    visitAs(device, {
      baseUrl: server.baseUrl,
      owner,
      ...(continuity !== undefined && { continuity }),
    })

  const reader = () => ({ baseUrl: server.baseUrl, owner })
  const rest = (path: string, init?: RequestInit) => readAs(reader(), path, init)
  const seenAs = (one: Visit) => visitorOf(reader(), one)

  async function visitAll(some: number[]): Promise<void> {
    const earlier = visits.length
    for (const device of some) visits.push(await visit(device))
    visitors = [...visitors, ...(await Promise.all(visits.slice(earlier).map(seenAs)))]
    await receiver.reached(2 * visits.length)
  }

  /** Everything that a back end can read. */
  async function everything(): Promise<unknown[]> {
    const about = `/v1/organizations/${owner.organizationId}`
    const lists = [
      '/v1/sessions?limit=100',
      '/v1/fingerprints?limit=100',
      about,
      `${about}/api-keys`,
    ]
    const hooks = [`${about}/webhooks/endpoints`, `${about}/events`]
    const details = visits.map(({ sessionId }) => `/v1/sessions/${sessionId}`)
    return await Promise.all([...lists, ...hooks, ...details].map((path) => rest(path)))
  }

  async function onEmbedded<T>(work: (log: EventLog) => Promise<T>): Promise<T> {
    const log = await openPostgresLog({
      pool: database.pool,
      url: database.url,
      logger,
      keepsExpired: true,
    })
    return await work(log).finally(() => log.close())
  }

  /** A record that nobody can read, in the partition of the key; consumers go on when it is skipped. */
  async function skipForeign(topic: string, key: string): Promise<Position> {
    const foreign = { topic, key, value: Buffer.from('not ours'), headers: { by: 'x' } }
    const [at] = await onEmbedded((log) => log.append([foreign]))
    if (!at) throw new Error('nothing appended')
    const place = [topic, String(at.partition), String(at.offset)]
    expect(
      await operator(embedded).cli(['log', 'skip', ...place, '--reason', 'a typo']),
    ).toMatchObject({
      code: 0,
    })
    return at
  }

  async function recordsOf(log: EventLog, topic: string): Promise<LogRecord[]> {
    const records: LogRecord[] = []
    const handle = (batches: { records: LogRecord[] }[]) => {
      for (const batch of batches) records.push(...batch.records)
    }
    await readTopicToEnd({ log, topic, handle })
    return records.sort((a, b) => a.partition - b.partition || a.offset - b.offset)
  }

  const countOf = async (topic: string): Promise<number> =>
    (await target.endPositions(topic)).reduce((sum, { offset }) => sum + offset, 0)

  /** Of each partition of what clients sent. */
  async function unscoredIn(log: EventLog): Promise<number[]> {
    const { rows } = await database.pool.query<Position>(
      'select partition, next_offset::float8 as "offset" from scoring.offsets where topic = $1 order by 1',
      [collect],
    )
    const ends = await log.endPositions(collect)
    return ends.map(({ offset }, i) => offset - (rows[i]?.offset ?? 0))
  }

  async function rebuildAll(settings: Record<string, string>): Promise<void> {
    const [, listed = ''] =
      /`tidegate rebuild` for each of (.*), with the settings/.exec(
        await sectionOf(page, heading),
      ) ?? []
    expect(Array.from(listed.matchAll(/`(\w+)`/g), ([, name]) => name).sort()).toEqual(
      [...names].sort(),
    )
    for (const name of names) {
      const { code, stdout, stderr } = await operator(settings).cli(['rebuild', name])
      expect(code, `rebuild ${name}: ${stdout}${stderr}`).toBe(0)
    }
  }

  it('has sessions, webhooks, skipped records, and lost the oldest of what clients sent', async () => {
    const types = ['session.fingerprint.calculated', 'session.result.persisted']
    const endpoint = { name: 'Receiver', url: receiver.url('/'), event_types: types }
    const about = `/v1/organizations/${owner.organizationId}`
    await rest(`${about}/webhooks/endpoints`, { method: 'POST', body: JSON.stringify(endpoint) })
    await visitAll(devices.slice(0, 4))
    await skipForeign(collect, visits[0]?.sessionId ?? '')
    await database.pool.query(
      `delete from tidegate_log.records r where topic = $1 and "offset" <=
         (select max("offset") / 2 from tidegate_log.records where topic = r.topic and partition = r.partition)`,
      [collect],
    )
    await visitAll(devices.slice(4, 7))
    await skipForeign(collect, visits[5]?.sessionId ?? '')
    await skipForeign(sessions, visits[5]?.sessionId ?? '')
    await eventually(
      async () => expect((await fetch(`${server.baseUrl}/readyz`)).status).toBe(200),
      patient,
    )
  }, 120_000)

  it('is copied ahead while its server runs, and moved only when that is stopped', async () => {
    expect(await copy('stopped')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/Servers or commands run/),
    })
    expect(await target.endPositions(sessions).catch(() => 'none')).toBe('none')
    expect(await copy('running')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/still belongs to/),
    })
    expect(await countOf(sessions)).toBeGreaterThan(7)
    await visitAll(devices.slice(7))
    await eventually(async () => {
      before = await everything()
      expect(JSON.stringify(before)).not.toMatch(/"status":"pending"/)
    }, patient)
    await rebuildAll(embedded)
    await server.end('SIGTERM')
  }, 180_000)

  it('has a session under way, of which nothing is scored yet', async () => {
    server = await startServerProcess(['serve', '--roles', 'collect'], embedded)
    const { baseUrl } = server
    underWay = createCollectClient({
      endpoint: baseUrl,
      publishableKey: owner.publishable.key,
      sdk: { name: 'test', version: '1', platform: 'web' },
      page: { url: 'https://shop.example/' },
      fetch: (url, init) => fetch(String(url).replace(baseUrl, server.baseUrl), init),
    })
    await underWay.open()
    expect(await copy('stopped')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/Servers or commands run/),
    })
    await server.end('SIGTERM')
    unscored = await onEmbedded(unscoredIn)
    expect(Math.max(...unscored)).toBeGreaterThan(0)
  }, 60_000)

  it('is not moved to a Kafka where others have the topics', async () => {
    const prefix = `${kafka.prefix}other.`
    const other = await openKafkaLog({
      brokers: kafka.brokers.split(','),
      topicPrefix: prefix,
      logger,
    })
    await other.ensureTopics([{ topic: sessions, partitions: 5 }])
    await other.append([{ topic: sessions, key: 'a', value: Buffer.from('theirs'), headers: {} }])
    const settings = { ...moved, KAFKA_TOPIC_PREFIX: prefix }
    expect(await operator(settings).cli(['log', 'copy', '--to', 'kafka'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/has records that are not of this embedded log/),
    })
    const ends = await Promise.all([collect, sessions].map((topic) => other.endPositions(topic)))
    expect(ends.flat().reduce((sum, { offset }) => sum + offset, 0)).toBe(1)
    await other.close()
  }, 60_000)

  it('is not copied under the schema ids of a registry that it was not written with', async () => {
    let ids = 1000
    const registry = createServer((_, response) => response.end(JSON.stringify({ id: ids++ })))
    registry.listen(0, '127.0.0.1')
    await once(registry, 'listening')
    const url = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`
    const settings = { ...moved, SCHEMA_REGISTRY_URL: url }
    expect(await operator(settings).cli(['log', 'copy', '--to', 'kafka'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/set SCHEMA_REGISTRY_URL as it was/),
    })
    registry.close()
  }, 60_000)

  it('goes on where it was killed, and has every record once', async () => {
    await onEmbedded(async (log) => {
      const [first] = (await recordsOf(log, sessions)).filter(
        ({ headers }) => headers.event_type === 'SessionScored',
      )
      if (first) await log.append(Array(repeats).fill(first))
    })
    const already = await countOf(sessions)
    const killed = startCli(['log', 'copy', '--to', 'kafka'], moved)
    const underway = eventually(
      async () => expect(await countOf(sessions)).toBeGreaterThan(already),
      {
        timeoutMs: 120_000,
        intervalMs: 5,
      },
    )
    const ended = killed.result.then((result) => Promise.reject(new Error(JSON.stringify(result))))
    await Promise.race([underway, ended]).finally(() => killed.kill('SIGKILL'))
    await killed.result
    expect(await countOf(sessions)).toBeLessThan(repeats)

    const { code, stdout, stderr } = await copy('stopped', '--json')
    if (code !== 0) throw new Error(stdout + stderr)
    const report = JSON.parse(stdout)
    expect(report.bound).toBe(true)
    const { rows } = await database.pool.query<{ topic: string; count: number }>(
      'select topic, count(*)::int as count from tidegate_log.records group by topic',
    )
    for (const { topic, compared } of report.topics)
      expect([topic, compared]).toEqual([
        topic,
        rows.find((row) => row.topic === topic)?.count ?? 0,
      ])
    expect(await copy('stopped')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/belongs to .* already/),
    })
  }, 180_000)

  it('has its own offsets of what clients sent, also in decisions to skip', async () => {
    const records = await recordsOf(target, collect)
    const foreign = records.filter(({ value }) => value.equals(Buffer.from('not ours')))
    const facts = (await operator(moved).cli(['log', 'skipped'])).stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line).data)
    const ofCollect = facts.filter((fact) => fact.skipped_topic === collect)
    expect(ofCollect.length).toBe(2)
    expect(foreign.length).toBeGreaterThan(0)
    for (const { partition, offset } of foreign)
      expect(ofCollect).toContainEqual(
        expect.objectContaining({ skipped_partition: partition, skipped_offset: offset }),
      )
    expect(await unscoredIn(target)).toEqual(unscored)
    expect((await target.committed(plannerGroup, [sessions])).length).toBeGreaterThan(0)
  }, 60_000)

  it('is refused to servers of the embedded log, and reads the same from Kafka', async () => {
    await expect(startServerProcess(['serve'], embedded)).rejects.toThrow(/read from Kafka cluster/)
    await database.pool.query('drop schema tidegate_log cascade')
    await rebuildAll(moved)
    const sent = receiver.requests.length
    server = await startServerProcess(['serve'], moved)
    expect(await everything()).toEqual(before)
    const { sealedToken } = await underWay.requestResult({ version: 1, elapsed_ms: 5 })
    expect(sealedToken).toEqual(expect.any(String))
    const ids = visits.map(({ sessionId }) => sessionId)
    const undo = await longAgo(database.pool, ids)
    const known: string[] = []
    for (const device of devices) {
      const kept = cleared.includes(device) ? undefined : visits[device]?.continuity
      known.push(await seenAs(await visit(device, kept)))
    }
    await undo()
    expect(known.filter((id, device) => id === visitors[device]).length).toBe(devices.length)
    await receiver.reached(sent + 2 * devices.length)
    const { rows } = await database.pool.query<{ sessions: number }>(
      'select count(*)::int as sessions from read.sessions',
    )
    expect(rows).toEqual([{ sessions: 2 * devices.length + 1 }])
    await rebuildAll(moved)
    expect(receiver.requests.filter(({ nth }) => nth > 1)).toEqual([])
  }, 480_000)
})
