import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect } from 'vitest'
import { createPool } from '../../infra/postgres/pool.ts'
import ids from '../../schemas/ids.json' with { type: 'json' }
import { type Cluster, startCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { type KafkaBroker, startKafkaBroker } from '../support/kafka-broker.ts'
import { createMarks } from '../support/marked/marks.ts'
import { filesOf, findMarked } from '../support/marked/scan.ts'
import { type MarkedVisitor, markedVisitor, visitMarked } from '../support/marked/visits.ts'
import { writeMmdb } from '../support/mmdb.ts'
import { needs } from '../support/needs.ts'
import { silent } from '../support/projections.ts'
import { pythonWithKafka } from '../support/python-kafka.ts'
import { root } from '../support/test-projects.ts'

const { describe, it } = needs('kafka-jars', 'python-kafka')
const run = promisify(execFile)
const prefix = 'facts.'
interface Group {
  start: string
  kind: string
  values: { asn: string | null; verdict: string }
  sessions: number
}

const patient = { timeoutMs: 120_000, intervalMs: 250 }

// All files of a broker of its own are searched.
describe('the topic of facts', () => {
  const everybody = Array.from({ length: 6 }, (_, n) =>
    markedVisitor(n, createMarks(`person ${n}`)),
  )
  const [gone, ...others] = everybody
  for (const one of others) one.address = one.n % 2 === 0 ? '8.8.8.10' : '62.1.0.10'
  let folder: string
  let broker: KafkaBroker
  let cluster: Cluster

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-facts-'))
    const asns = path.join(folder, 'asn.mmdb')
    await writeMmdb(asns, 'GeoLite2-ASN', {
      '8.8.8.0/24': { autonomous_system_number: 64500, autonomous_system_organization: 'One' },
      '62.1.0.0/16': { autonomous_system_number: 64501, autonomous_system_organization: 'Two' },
    })
    broker = await startKafkaBroker({
      logger: silent,
      folder,
      // Indexes are made at their full size, and all of it is searched.
      properties: 'log.cleaner.backoff.ms=500\nlog.index.size.max.bytes=65536\n',
    })
    const env = {
      KAFKA_BROKERS: broker.brokers,
      KAFKA_TOPIC_PREFIX: prefix,
      TOPIC_PARTITIONS: '2',
      FACTS_GONE_WITHIN_MS: '16000',
      TRUSTED_PROXIES: '127.0.0.0/8',
      ASN_MMDB: asns,
    }
    cluster = await startCluster({ log: 'postgres', processes: 1, env })
  }, 180_000)
  afterAll(async () => {
    await cluster?.stop()
    await broker?.stop()
    if (folder) await rm(folder, { recursive: true, force: true })
  })

  const policy = (...flags: string[]) =>
    cluster.operate('org', 'policy', cluster.owner.slug, ...flags)
  const factsFiles = () => filesOf(path.join(broker.dataDir, 'log'))
  async function* topicFiles() {
    for await (const place of factsFiles())
      if (place.name.includes('tidegate.facts.v1-')) yield place
  }
  const marksOf = (some: (MarkedVisitor | undefined)[]) => some.flatMap((one) => one?.marks ?? [])

  async function countsOfApi(): Promise<Record<string, number>> {
    const path = '/v1/sessions/aggregates?group_by=asn,verdict&interval=hour&top=100'
    const headers = { authorization: `Bearer ${cluster.owner.secret.key}` }
    const answer = await cluster.fetch(0, path, { headers })
    expect(answer.status).toBe(200)
    const { data }: { data: { groups: Group[] } } = JSON.parse(await answer.text())
    return Object.fromEntries(
      data.groups.map(({ start, kind, values, sessions }) => {
        expect(kind).toBe('value')
        return [`${values.asn ?? 'None'} ${start.slice(0, 13)} ${values.verdict}`, sessions]
      }),
    )
  }

  async function countsOfReader(): Promise<Record<string, number>> {
    const { stdout } = await run(await pythonWithKafka(), [
      path.join(root, 'test/fixtures/count-facts.py'),
      broker.brokers,
      `${prefix}tidegate.facts.v1`,
      path.join(root, 'schemas/facts/SessionFacts.v1.avsc'),
      String(ids['facts/SessionFacts.v1']),
    ])
    return JSON.parse(stdout)
  }

  it('is counted by a reader with nothing but the schema, as the API counts', async () => {
    await policy('--facts', 'on', '--hidden-facts', 'none')
    const server = {
      baseUrl: cluster.baseUrls[0] ?? '',
      publishableKey: cluster.owner.publishable.key,
    }
    for (const one of everybody) await visitMarked(one, server, 'web')
    await eventually(async () => {
      const counts = await countsOfApi()
      expect(Object.values(counts).reduce((sum, n) => sum + n, 0)).toBe(everybody.length)
      expect(Object.keys(counts).filter((name) => name.startsWith('6450')).length).toBeGreaterThan(
        1,
      )
      expect(await countsOfReader()).toEqual(counts)
    }, patient)
  }, 180_000)

  it('has no byte of an erased person in any file, with nothing else written', async () => {
    await eventually(
      async () => expect(await findMarked(marksOf([gone]), topicFiles())).not.toEqual([]),
      patient,
    )
    const pool = createPool({ url: cluster.settings.DATABASE_URL ?? '', max: 1 })
    const { rows } = await pool.query(
      'select visitor_id from read.sessions where session_id = any($1)',
      [gone?.sessionIds],
    )
    await pool.end()
    const path = `/v1/organizations/${cluster.owner.organizationId}/visitors/${rows[0]?.visitor_id}`
    const headers = { authorization: `Bearer ${cluster.owner.secret.key}` }
    expect((await cluster.fetch(0, path, { method: 'DELETE', headers })).status).toBe(200)
    await eventually(
      async () => expect(await findMarked(marksOf([gone]), topicFiles())).toEqual([]),
      patient,
    )
    await eventually(async () => {
      expect(await findMarked(marksOf(others.slice(0, 1)), topicFiles())).not.toEqual([])
      expect(await countsOfReader()).toEqual(await countsOfApi())
    }, patient)
  }, 180_000)

  it('and without the topic none of anybody', async () => {
    await policy('--facts', 'off')
    await eventually(
      async () => expect(await findMarked(marksOf(others), topicFiles())).toEqual([]),
      patient,
    )
    expect(await countsOfReader()).toEqual({})
  }, 180_000)
})
