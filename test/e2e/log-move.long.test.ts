import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { createKafkaClient } from '../../infra/log/kafka/client.ts'
import { openKafkaLog } from '../../infra/log/kafka/log.ts'
import type { EventLog, LogRecord, Position } from '../../infra/log/port.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { readTopicToEnd } from '../../infra/log/read-topic.ts'
import type { CollectClient } from '../../infra/wire/collect/client.ts'
import { eventTopics } from '../../schemas/events.ts'
import { plannerGroup } from '../../services/webhooks/planner/planner.ts'
import { jsonLines, startCli } from '../support/cli.ts'
import { type Cluster, kafkaPlace, operator, startCluster } from '../support/cluster.ts'
import { createTestClient, type Visit, visitAs, visitorOf, withoutUse } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { serveLocally } from '../support/local-server.ts'
import { deleteTopics } from '../support/logs.ts'
import { longAgo } from '../support/long-ago.ts'
import { freshMetrics } from '../support/metrics.ts'
import { needs } from '../support/needs.ts'
import { documentedSteps } from '../support/printed-commands.ts'
import { silent as logger } from '../support/projections.ts'
import { rebuildable, rebuildIsEqual } from '../support/roles.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { fastWebhooks } from '../support/webhook-world.ts'

const { describe, it } = needs('kafka')

const collect = 'tidegate.collect.v1'
const sessions = 'tidegate.sessions.v1'
const operations = 'tidegate.operations.v1'
const patient = { timeoutMs: 30_000, intervalMs: 200 }
const often = { timeoutMs: 120_000, intervalMs: 5 }
const devices = Array.from({ length: 10 }, (_, n) => n)
/** These come back without what their browser kept. */
const cleared = devices.filter((n) => n % 5 === 0)
/** So many that a move of them can be stopped half way. */
const repeats = 10_000

const viewOfBodies = `export default {
  name: 'bodies',
  version: 1,
  events: ['BatchReceived'],
  tables: { bodies: { columns: { event_id: 'text', times: 'integer' }, key: ['event_id'] } },
  handle: ({ id }) => [
    { table: 'bodies', key: { event_id: id }, to: (row) => ({ times: (row?.times ?? 0) + 1 }) },
  ],
}
`

const withoutPlace = ({ partition, offset: _, value, ...record }: LogRecord) => ({
  ...record,
  partition,
  // A decision to skip names the offset of its record, which is another one on Kafka.
  value: record.topic === operations ? undefined : value,
})

describe('an installation that moves to Kafka', () => {
  const file = path.join(temporaryFolder('move'), 'bodies.ts')
  let cluster: Cluster
  let kafka: Awaited<ReturnType<typeof kafkaPlace>>
  let embedded: Record<string, string>
  let moved: Record<string, string>
  let receiver: WebhookReceiver
  let target: EventLog
  const visits: Visit[] = []
  let visitors: string[] = []
  let before: unknown
  let skipped: Position
  let underWay: CollectClient

  beforeAll(async () => {
    kafka = await kafkaPlace()
    receiver = await startWebhookReceiver()
    cluster = await startCluster({ env: { ...fastWebhooks, TOPIC_PARTITIONS: '5' }, isEmpty: true })
    embedded = { ...cluster.settings }
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
  }, 90_000)

  afterAll(async () => {
    await cluster?.stop()
    await receiver?.close()
    await target?.close()
    await deleteTopics(kafka.brokers.split(','), kafka.prefix)
  })

  const page = 'docs/operate/kafka.md'
  const heading = 'From the embedded log to Kafka'
  /** As the docs print it. */
  async function move(...args: string[]) {
    const documented = await documentedSteps(page, heading)
    const command = documented.find(([name]) => name === 'log') ?? []
    expect(command).toEqual(['log', 'move'])
    return operator(moved).cli([...command, ...args])
  }
  const organization = () => `/v1/organizations/${cluster.owner.organizationId}`
  const seenAs = (one: Visit) => visitorOf(cluster, one)

  async function visitAll(some: number[]): Promise<void> {
    const earlier = visits.length
    for (const device of some) visits.push(await visitAs(cluster, device))
    visitors = [...visitors, ...(await Promise.all(visits.slice(earlier).map(seenAs)))]
    await receiver.reached(2 * visits.length)
  }

  /** Everything that a back end can read. */
  async function everything(): Promise<unknown> {
    const paths = [
      '/v1/sessions?limit=100',
      '/v1/fingerprints?limit=100',
      ...['', '/api-keys', '/webhooks/endpoints', '/events'].map((rest) => organization() + rest),
      ...visits.map(({ sessionId }) => `/v1/sessions/${sessionId}`),
    ]
    return withoutUse(await Promise.all(paths.map((one) => cluster.read(one))))
  }

  async function onEmbedded<T>(work: (log: EventLog) => Promise<T>): Promise<T> {
    const log = await openPostgresLog({
      pool: cluster.pool,
      url: cluster.settings.DATABASE_URL ?? '',
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
    expect(await cluster.cli(['log', 'skip', ...place, '--reason', 'a typo'])).toMatchObject({
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

  async function bodiesInView(): Promise<{ event_id: string; times: number }[]> {
    return (await cluster.pool.query('select event_id, times from view_bodies.bodies')).rows
  }

  /** Ends the server when all consumers have read everything. */
  async function stopServer(): Promise<void> {
    await eventually(async () => {
      const lags = (await freshMetrics(cluster.baseUrl)).match(
        /^tidegate_consumer_lag_records.*$/gm,
      )
      expect(lags?.length).toBeGreaterThan(0)
      expect(lags?.filter((line) => !line.endsWith(' 0'))).toEqual([])
    }, patient)
    await cluster.end()
  }

  it('has sessions, webhooks, skipped records, and lost the oldest of what clients sent', async () => {
    const event_types = ['session.fingerprint.calculated', 'session.result.persisted']
    await cluster.createEndpoint(receiver.url('/'), event_types)
    await visitAll(devices.slice(0, 4))
    await skipForeign(collect, visits[0]?.sessionId ?? '')
    await cluster.pool.query(
      `delete from tidegate_log.records r where topic = $1 and "offset" <=
         (select max("offset") / 2 from tidegate_log.records where topic = r.topic and partition = r.partition)`,
      [collect],
    )
    await visitAll(devices.slice(4, 7))
    await skipForeign(collect, visits[5]?.sessionId ?? '')
    skipped = await skipForeign(sessions, visits[5]?.sessionId ?? '')
    await eventually(async () => expect(await cluster.readiness()).toBe('200 ok'), patient)
  }, 120_000)

  it('has a view of its own that reads what clients sent', async () => {
    await writeFile(file, viewOfBodies)
    expect(await cluster.cli(['project', file, '--once'])).toMatchObject({ code: 0 })
    expect((await bodiesInView()).length).toBeGreaterThan(0)
  }, 60_000)

  it('is not moved while its server runs, and nothing is made on Kafka', async () => {
    const refused = { code: 1, stderr: expect.stringMatching(/Servers or commands are using/) }
    expect(await move()).toMatchObject(refused)
    expect(await target.endPositions(sessions).catch(() => 'none')).toBe('none')
    await stopServer()
  }, 60_000)

  it('is not moved while scoring is behind', async () => {
    await cluster.replace(0, { roles: 'collect' })
    underWay = createTestClient(cluster, {
      endpoint: '',
      fetch: (url, init) => fetch(cluster.baseUrl + url, init),
    })
    await underWay.open()
    await cluster.end()
    const { code, stderr } = await move()
    expect(code).toBe(1)
    expect(stderr).toMatch(/scoring is \d+ records? behind on tidegate\.collect\.v1\/\d/)
    const documented = await documentedSteps(page, heading)
    const [, , roles] = documented.find(([name]) => name === 'serve') ?? []
    expect(stderr).toContain(`tidegate serve --roles ${roles}`)
    await cluster.replace(0, { roles: roles ?? '' })
    await stopServer()
    expect(await target.endPositions(sessions).catch(() => 'none')).toBe('none')
  }, 60_000)

  it('is not moved under the schema ids of a registry that it was not written with', async () => {
    let ids = 1000
    const registry = await serveLocally((_, response) => response.end(`{"id":${ids++}}`))
    const settings = { ...moved, SCHEMA_REGISTRY_URL: registry.url }
    expect(await operator(settings).cli(['log', 'move'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/set SCHEMA_REGISTRY_URL to its previous value/),
    })
    registry.close()
  }, 60_000)

  /** Each resolves when the move is in the step, with what is to be undone when the move is dead. */
  const steps = {
    copying: async () => {
      const before = await countOf(sessions).catch(() => 0)
      await eventually(async () => expect(await countOf(sessions)).toBeGreaterThan(before), often)
    },
    comparing: async () => {
      const admin = createKafkaClient({ brokers: kafka.brokers.split(','), logger }).admin()
      await admin.connect()
      const groupsNow = async () =>
        (await admin.listGroups()).groups.map(({ groupId }) => groupId).filter(isReading)
      const isReading = (group: string) => group.startsWith(`${kafka.prefix}tidegate.reading.`)
      const before = await groupsNow()
      await eventually(async () => {
        expect((await groupsNow()).filter((group) => !before.includes(group))).not.toEqual([])
      }, often).finally(() => admin.disconnect())
    },
    binding: async () => {
      const client = await cluster.pool.connect()
      await client.query('begin; lock table tidegate_log.partitions in row share mode')
      const text = `select from pg_locks where not granted and relation = 'tidegate_log.partitions'::regclass`
      await eventually(
        async () => expect((await client.query(text)).rowCount).toBeGreaterThan(0),
        often,
      )
      return () => client.release(true)
    },
  }

  for (const [name, reached] of Object.entries(steps))
    it(`goes on with the embedded log when the move is killed while ${name}`, async () => {
      if (name === 'copying')
        await onEmbedded(async (log) => {
          const [first] = (await recordsOf(log, sessions)).filter(
            ({ headers }) => headers.event_type === 'SessionScored',
          )
          if (first) await log.append(Array(repeats).fill(first))
        })
      await cluster.replace()
      await visitAll([devices[visits.length] ?? 0])
      await stopServer()
      const killed = startCli(['log', 'move'], moved)
      const ended = killed.result.then((result) =>
        Promise.reject(new Error(JSON.stringify(result))),
      )
      const undo = await Promise.race([reached(), ended]).finally(() => killed.kill('SIGKILL'))
      await killed.result
      undo?.()
      const text = 'select identity from tidegate.bound_log'
      const { rows } = await cluster.pool.query<{ identity: string }>(text)
      expect(rows[0]?.identity).toMatch(/^embedded log/)
    }, 300_000)

  it('is moved, with every record once and in its place', async () => {
    await cluster.replace()
    await eventually(async () => {
      before = await everything()
      expect(JSON.stringify(before)).not.toMatch(/"status":"pending"/)
    }, patient)
    await stopServer()
    const raised = await onEmbedded((log) => log.committedPositions(plannerGroup, [sessions]))
    const topics = [...new Set(Object.values(eventTopics))]
    const originals = await onEmbedded((log) =>
      Promise.all(topics.map((topic) => recordsOf(log, topic))),
    )
    const { code, stdout, stderr } = await move('--json')
    if (code !== 0) throw new Error(stdout + stderr)
    const report: { topics: { topic: string; records: number }[] } = JSON.parse(stdout)
    const counts = topics.map((topic, i) => ({ topic, records: originals[i]?.length }))
    expect(report.topics).toEqual(expect.arrayContaining(counts))
    expect(report.topics.length).toBe(topics.length)
    for (const [i, topic] of topics.entries()) {
      const [there, here] = [await recordsOf(target, topic), originals[i] ?? []]
      if (topic !== collect && topic !== operations) expect(there).toEqual(here)
      else expect(there.map(withoutPlace)).toEqual(here.map(withoutPlace))
    }
    const raisedThere = await target.committedPositions(plannerGroup, [sessions])
    expect(raisedThere).toEqual(raised.toSorted((one, two) => one.partition - two.partition))
    const again = { code: 1, stderr: expect.stringMatching(/already uses /) }
    expect(await move()).toMatchObject(again)
  }, 180_000)

  it('has scored all that clients sent, and knows what is skipped of the other topics', async () => {
    const { rows } = await cluster.pool.query<Position>(
      'select topic, partition, next_offset::float8 as "offset" from scoring.offsets order by partition',
    )
    expect(rows).toEqual(await target.endPositions(collect))
    const { stdout } = await operator(moved).cli(['log', 'skipped'])
    expect(jsonLines<{ data: object }>(stdout).map(({ data }) => data)).toMatchObject([
      { skipped_topic: collect, skipped_offset: -1 },
      { skipped_topic: collect, skipped_offset: -1 },
      { skipped_topic: sessions, skipped_offset: skipped.offset },
    ])
  }, 60_000)

  it('is refused to servers of the embedded log, and reads the same from Kafka without a rebuild', async () => {
    await expect(cluster.replace()).rejects.toThrow(/filled from Kafka cluster/)
    await cluster.pool.query('drop schema tidegate_log cascade')
    const sent = receiver.requests.length
    await cluster.replace(0, { env: moved })
    expect(await everything()).toEqual(before)
    const { sealedToken } = await underWay.requestResult({ version: 1, elapsed_ms: 5 })
    expect(sealedToken).toEqual(expect.any(String))
    const ids = visits.map(({ sessionId }) => sessionId)
    const undo = await longAgo(cluster.pool, ids)
    const known: string[] = []
    for (const device of devices) {
      const kept = cleared.includes(device) ? undefined : visits[device]?.continuity
      known.push(await seenAs(await visitAs(cluster, device, { continuity: kept })))
    }
    await undo()
    expect(known.filter((id, device) => id === visitors[device]).length).toBe(devices.length)
    await receiver.reached(sent + 2 * devices.length)
    const { rows } = await cluster.pool.query<{ sessions: number }>(
      'select count(*)::int as sessions from read.sessions',
    )
    expect(rows).toEqual([{ sessions: 2 * devices.length + 1 }])
    expect(receiver.requests.filter(({ nth }) => nth > 1)).toEqual([])
  }, 240_000)

  it('fills the view of its own with what came since', async () => {
    const had = await bodiesInView()
    expect(await operator(moved).cli(['project', file, '--once'])).toMatchObject({ code: 0 })
    const has = await bodiesInView()
    expect(has.filter(({ times }) => times !== 1)).toEqual([])
    const ids = new Set(has.map(({ event_id }) => event_id))
    expect(had.filter(({ event_id }) => !ids.has(event_id))).toEqual([])
    const onKafka = (await recordsOf(target, collect)).filter(
      ({ headers }) => headers.event_type === 'BatchReceived',
    )
    expect(onKafka.filter(({ headers }) => !ids.has(headers.event_id ?? ''))).toEqual([])
    expect(has.length).toBeGreaterThan(had.length)
  }, 60_000)

  it.each(rebuildable)(
    'equals what a rebuild of %s makes',
    (name) => rebuildIsEqual(moved, name),
    120_000,
  )
})
