import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CollectClient } from '../../infra/wire/collect/client.ts'
import { jsonLines } from '../support/cli.ts'
import { type Cluster, clusterLogs, startCluster } from '../support/cluster.ts'
import { createTestClient } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { deleteRecords } from '../support/logs.ts'
import { metricOf } from '../support/metrics.ts'

const topic = 'tidegate.collect.v1'
const patient = { timeoutMs: 60_000, intervalMs: 50 }
const quiet = { version: 1, elapsed_ms: 5 } as const

describe.each(clusterLogs())('scoring was down for longer than records are kept, %s', (log) => {
  let cluster: Cluster
  beforeAll(async () => {
    const env = { COLLECT_MAX_BACKLOG_MS: '500' }
    cluster = await startCluster({ log, env, roles: 'collect,projections,api' })
  }, 300_000)
  afterAll(() => cluster?.stop())

  async function open(): Promise<CollectClient> {
    const client = createTestClient(cluster, { retry: { attempts: 1 } })
    await client.open()
    return client
  }

  const scored = (client: CollectClient) => eventually(() => client.requestResult(quiet), patient)
  const lag = () => metricOf(cluster.baseUrl, 'tidegate_consumer_lag_records{group="scoring"')

  async function expire(): Promise<void> {
    const { KAFKA_BROKERS: brokers = '', KAFKA_TOPIC_PREFIX: prefix = '' } = cluster.settings
    if (log === 'kafka') return deleteRecords(brokers.split(','), prefix + topic)
    await cluster.pool.query('delete from tidegate_log.records where topic = $1', [topic])
  }

  it('new sessions are taken, and what expired unread is an error and a count', async () => {
    // It had read something before it was down.
    const before = await cluster.serve('scoring')
    await scored(await open())
    expect(await before.end('SIGTERM')).toBe(0)

    const clients: CollectClient[] = []
    // Until the backlog is too old.
    await eventually(async () => {
      const refused = open().then((client) => void clients.push(client))
      await expect(refused).rejects.toMatchObject({ status: 503 })
    }, patient)
    await Promise.all(clients.map((client) => eventually(() => client.sendBatch(quiet), patient)))
    await eventually(async () => expect(await lag()).toBeGreaterThan(clients.length), patient)

    await expire()
    await eventually(async () => {
      expect(await lag()).toBe(0)
      expect(await metricOf(cluster.baseUrl, 'tidegate_collect_backlog_seconds')).toBe(0)
    }, patient)
    const first = await eventually(open, patient)

    const scoring = await cluster.serve('scoring')
    await scored(first)
    for (let i = 0; i < 10; i++) await scored(await eventually(open, patient))
    const expired = 'tidegate_consumer_expired_records_total{group="scoring"}'
    const unread = await metricOf(scoring.baseUrl, expired)
    expect(unread).toBeGreaterThan(clients.length)
    const errors = jsonLines<{ msg: string; records: number }>(scoring.output()).filter(({ msg }) =>
      msg.includes('records expired before scoring read them'),
    )
    expect(errors.reduce((sum, { records }) => sum + records, 0)).toBe(unread)
    await eventually(async () => expect(await lag()).toBe(0), patient)
  }, 240_000)
})
