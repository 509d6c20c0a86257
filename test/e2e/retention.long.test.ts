import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { visitAs } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { pastEvents } from '../support/past-events.ts'
import { rebuildIsEqual } from '../support/roles.ts'

const day = 24 * 60 * 60 * 1000
const patient = { timeoutMs: 30_000, intervalMs: 200 }

describe('a server that lets sessions and visitors end', () => {
  let cluster: Cluster

  beforeAll(async () => {
    cluster = await startCluster({ isEmpty: true })
  }, 60_000)
  afterAll(() => cluster?.stop())

  async function idsAt(path: string): Promise<string[]> {
    const rows = await cluster.read<{ id: string }[]>(`${path}?limit=100`)
    return rows.map(({ id }) => id).sort()
  }

  it('deletes what is older than the settings say, and nothing else', async () => {
    for (const device of [1, 2, 3]) await visitAs(cluster, device)
    await eventually(async () => expect(await idsAt('/v1/sessions')).toHaveLength(3), patient)
    const [sessions, visitors] = [await idsAt('/v1/sessions'), await idsAt('/v1/fingerprints')]
    const fiveDaysAgo = { from: 0, count: 20, start: Date.now() - 5 * day }
    await cluster.append(pastEvents(cluster.owner, fiveDaysAgo))
    await eventually(async () => expect(await idsAt('/v1/sessions')).toHaveLength(23), patient)

    Object.assign(cluster.settings, { SESSION_RETENTION_DAYS: '2', VISITOR_RETENTION_DAYS: '3' })
    await cluster.replace()
    await eventually(async () => expect(await idsAt('/v1/sessions')).toEqual(sessions), patient)
    await eventually(async () => expect(await idsAt('/v1/fingerprints')).toEqual(visitors), patient)
    expect(await cluster.operate('org', 'policy', cluster.owner.slug)).toMatchObject({
      ended: { sessions_before: expect.any(Number), webhooks_before: null },
    })
  }, 60_000)

  it.each(['policies', 'sessions', 'webhooks'])(
    'a rebuild of %s is equal',
    (projection) => rebuildIsEqual(cluster.settings, projection),
    60_000,
  )

  it('so is one of scoring, which has none of them either', async () => {
    const report = await cluster.cli(['rebuild', 'scoring', '--json'])
    expect(JSON.parse(report.stdout)).toMatchObject({ visitors: 3, switched: true })
  }, 60_000)
})
