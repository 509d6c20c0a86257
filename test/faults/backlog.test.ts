import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CollectError, createCollectClient } from '../../infra/wire/collect/client.ts'
import { type Cluster, clusterLogs, startCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'

const env = { COLLECT_MAX_BACKLOG_MS: '500' }
const patient = { timeoutMs: 30_000, intervalMs: 50 }
const quiet = { version: 1, elapsed_ms: 5 } as const

describe.each(clusterLogs())('collect with scoring in another process, %s', (log) => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster({ log, env, processes: 1, roles: 'collect,projections' })
  }, 120_000)
  afterAll(() => cluster?.stop())

  const newClient = () =>
    createCollectClient({
      endpoint: cluster.baseUrls[0] ?? '',
      publishableKey: cluster.owner.publishable.key,
      fetch,
      sdk: { name: 'test', version: '1', platform: 'web' },
      page: { url: 'https://shop.example/' },
      retry: { attempts: 1 },
    })

  it('sheds new sessions while nothing is scored, and takes them again once that goes on', async () => {
    const running = newClient()
    await running.open()
    await eventually(async () => {
      const refused = await newClient()
        .open()
        .catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(CollectError)
      expect(refused).toMatchObject({ status: 503, code: 'service.unavailable' })
    }, patient)
    expect((await running.sendBatch(quiet)).seq).toBe(1)
    await cluster.serve('scoring')
    const fresh = await eventually(async () => {
      const client = newClient()
      await client.open()
      return client
    }, patient)
    await fresh.sendBatch(quiet)
    expect(await eventually(() => fresh.requestResult(quiet), patient)).toMatchObject({
      sealedToken: expect.any(String),
    })
  }, 120_000)
})
