import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Position } from '../../infra/log/port.ts'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { type Cluster, clusterLogs, startCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { appendForeign, foreignValues } from '../support/foreign-records.ts'

const topic = 'tidegate.sessions.v1'
const patient = { timeoutMs: 20_000, intervalMs: 100 }

const cases = Object.entries(foreignValues)
  .slice(0, 2)
  .flatMap(([kind, value]) => clusterLogs().map((log) => ({ kind, value, log })))

describe.each(cases)('a record $kind, $log', ({ value, log }) => {
  let cluster: Cluster
  let at: Position

  beforeAll(async () => {
    cluster = await startCluster({ log, processes: 1 })
  }, 60_000)
  afterAll(() => cluster?.stop())

  const readiness = async () => (await cluster.fetch(0, '/readyz')).status
  const place = () => [at.topic, String(at.partition), String(at.offset)]
  const events = (...args: string[]) => cluster.cli(['events', '--topic', topic, ...args])

  /** Its first record comes to the partition that has the foreign one. */
  async function openSession(): Promise<string> {
    const client = createCollectClient({
      endpoint: cluster.baseUrls[0] ?? '',
      publishableKey: cluster.owner.publishable.key,
      sdk: { name: 'test', version: '1', platform: 'web' },
      page: { url: 'https://shop.example/' },
      fetch,
    })
    const { sessionId } = await client.open()
    // Whoever reads which records are skipped meets one that cannot be read, too.
    const [mine] = await appendForeign(
      cluster,
      [topic, 'tidegate.operations.v1'].map((of) => ({
        topic: of,
        key: sessionId,
        value,
        headers: { by: 'x' },
      })),
    )
    if (mine) at = mine
    client.requestResult({ version: 1, elapsed_ms: 5 }).catch(() => {})
    return sessionId
  }

  /** Over all partitions. */
  async function lagOf(group: string, unit: 'records' | 'seconds'): Promise<number> {
    const text = await (await fetch(`${cluster.baseUrls[0]}/metrics`)).text()
    const values = text.matchAll(
      new RegExp(`^tidegate_consumer_lag_${unit}{group="${group}".*} (\\S+)$`, 'gm'),
    )
    const all = [...values].map(([, value]) => Number(value))
    expect(all.length).toBeGreaterThan(0)
    return all.reduce((sum, value) => sum + value, 0)
  }

  async function isShown(sessionId: string): Promise<boolean> {
    const headers = { authorization: `Bearer ${cluster.owner.secret.key}` }
    return (await cluster.fetch(0, `/v1/sessions/${sessionId}`, { headers })).status === 200
  }

  it('stops its partition, and is left out by a command that says why', async () => {
    const sessionId = await openSession()
    await eventually(async () => expect(await readiness()).toBe(503), patient)
    expect(await isShown(sessionId)).toBe(false)
    for (const group of ['sessions', 'planner']) {
      await eventually(
        async () => expect(await lagOf(group, 'records')).toBeGreaterThan(0),
        patient,
      )
      await eventually(
        async () => expect(await lagOf(group, 'seconds')).toBeGreaterThan(0),
        patient,
      )
    }
    expect(await lagOf('scoring', 'records')).toBe(0)
    const skipped = await cluster.cli([
      'log',
      'skip',
      ...place(),
      '--reason',
      'a typo',
      '--by',
      'Ada',
    ])
    expect(skipped).toMatchObject({ code: 0, stderr: '' })
    await eventually(async () => expect(await readiness()).toBe(200), patient)
    await eventually(async () => expect(await isShown(sessionId)).toBe(true), patient)
    for (const group of ['sessions', 'planner'])
      await eventually(async () => expect(await lagOf(group, 'records')).toBe(0), patient)
  }, 60_000)

  it('is kept as a fact, and left out by a rebuild and by commands that read the topic', async () => {
    const { stdout } = await cluster.cli(['log', 'skipped'])
    const [unreadable, fact] = stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
    expect(unreadable).toMatchObject({
      unreadable: expect.any(String),
      value: value.toString('base64'),
    })
    expect(fact.data).toMatchObject({
      skipped_topic: topic,
      skipped_partition: at.partition,
      skipped_offset: at.offset,
      reason: 'a typo',
      skipped_by: 'Ada',
      record_value: value.toString('base64'),
      record_headers: { by: 'x' },
      actor: { type: 'operator', id: 'log skip' },
      request_id: null,
    })
    const entries = await cluster.operate<object[]>('audit', '--limit', '1')
    const subject_id = `${topic}/${at.partition}`
    const actor = { type: 'operator', id: 'log skip' }
    expect(entries).toMatchObject([
      { type: 'RecordSkipped', subject_id, actor, organization_id: null },
    ])
    expect(await cluster.cli(['rebuild', 'sessions'])).toMatchObject({ code: 0 })
    expect(await cluster.cli(['rebuild', 'repeats'])).toMatchObject({ code: 0 })
  }, 60_000)

  it('is told from one that can be read, and from one that is not there', async () => {
    const lines = (await events()).stdout.split('\n').filter(Boolean)
    const all = lines.map((line) => JSON.parse(line))
    expect(all.filter(({ unreadable }) => unreadable)).toMatchObject([{ position: at }])
    const first = all.find(({ type }) => type === 'SessionScored')
    const { partition, offset } = first.position
    const skip = (...args: (string | number)[]) =>
      cluster.cli(['log', 'skip', topic, ...args.map(String), '--reason', 'none'])
    expect(await skip(partition, offset)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/can be read, as SessionScored/),
    })
    expect(await skip(partition, 100_000)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/no such record/),
    })
  }, 60_000)
})
