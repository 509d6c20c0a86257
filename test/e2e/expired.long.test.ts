import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPool } from '../../infra/postgres/pool.ts'
import { type CollectClient, createCollectClient } from '../../infra/wire/collect/client.ts'
import { type Cluster, clusterLogs, startCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { deleteRecords } from '../support/logs.ts'

const topic = 'tidegate.collect.v1'
const maxBacklogMs = 500
const patient = { timeoutMs: 60_000, intervalMs: 50 }
const quiet = { version: 1, elapsed_ms: 5 } as const

describe.each(clusterLogs())('scoring was down for longer than records are kept, %s', (log) => {
  let cluster: Cluster
  beforeAll(async () => {
    const env = { COLLECT_MAX_BACKLOG_MS: String(maxBacklogMs) }
    cluster = await startCluster({ log, env, processes: 1, roles: 'collect,projections,api' })
  }, 300_000)
  afterAll(() => cluster?.stop())

  async function open(): Promise<CollectClient> {
    const client = createCollectClient({
      endpoint: cluster.baseUrls[0] ?? '',
      publishableKey: cluster.owner.publishable.key,
      sdk: { name: 'test', version: '1', platform: 'web' },
      page: { url: 'https://shop.example/' },
      retry: { attempts: 1 },
      fetch,
    })
    await client.open()
    return client
  }

  const scored = (client: CollectClient) => eventually(() => client.requestResult(quiet), patient)

  async function metric(name: string, baseUrl = cluster.baseUrls[0]): Promise<number> {
    const text = await (await fetch(`${baseUrl}/metrics`)).text()
    const series = text.split('\n').filter((line) => line.startsWith(name))
    expect(series).not.toEqual([])
    return series.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }
  const lag = () => metric('tidegate_consumer_lag_records{group="scoring"')

  async function expire(): Promise<void> {
    const {
      KAFKA_BROKERS: brokers = '',
      KAFKA_TOPIC_PREFIX: prefix = '',
      DATABASE_URL,
    } = cluster.settings
    if (log === 'kafka') return deleteRecords(brokers.split(','), prefix + topic)
    const pool = createPool({ url: DATABASE_URL ?? '' })
    await pool.query('delete from tidegate_log.records where topic = $1', [topic])
    await pool.end()
  }

  it('new sessions are taken, and what expired unread is an error and a count', async () => {
    // It had read something before it was down.
    const before = await cluster.serve('scoring')
    await scored(await open())
    expect(await before.end('SIGTERM')).toBe(0)

    const clients: CollectClient[] = []
    // Until the backlog is too old.
    await eventually(
      () =>
        expect(
          open().then(
            (client) => void clients.push(client),
            ({ status }) => status,
          ),
        ).resolves.toBe(503),
      patient,
    )
    await Promise.all(clients.map((client) => eventually(() => client.sendBatch(quiet), patient)))
    await eventually(async () => expect(await lag()).toBeGreaterThan(clients.length), patient)

    await expire()
    await eventually(async () => expect(await lag()).toBe(0), patient)
    await eventually(
      async () => expect(await metric('tidegate_collect_backlog_seconds')).toBe(0),
      patient,
    )
    const first = await eventually(open, patient)

    const scoring = await cluster.serve('scoring')
    await scored(first)
    for (let i = 0; i < 10; i++) await scored(await eventually(open, patient))
    const expired = 'tidegate_consumer_expired_records_total{group="scoring"}'
    const unread = await metric(expired, scoring.baseUrl)
    expect(unread).toBeGreaterThan(clients.length)
    const lines = scoring.output().split('\n')
    const errors = lines.filter((line) => line.includes('records expired before scoring read them'))
    expect(errors.map((line) => JSON.parse(line).records).reduce((sum, n) => sum + n, 0)).toBe(
      unread,
    )
    await eventually(async () => expect(await lag()).toBe(0), patient)
  }, 240_000)
})
