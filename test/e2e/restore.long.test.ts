import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPool } from '../../infra/postgres/pool.ts'
import { type Cluster, clusterLogs, startCluster } from '../support/cluster.ts'
import { type Visit, visitAs, visitorOf, withoutUse } from '../support/devices.ts'
import { deleteRecords } from '../support/logs.ts'
import { longAgo } from '../support/long-ago.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { documentedSteps } from '../support/printed-commands.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const collectTopic = 'tidegate.collect.v1'
const devices = Array.from({ length: 25 }, (_, n) => n)
/** These come back without what their browser kept. */
const cleared = devices.filter((n) => n % 5 === 0)

describe.each(clusterLogs())('the database is lost, %s', (log) => {
  const folder = temporaryFolder('restore')
  let cluster: Cluster
  let other: TestDatabase | undefined

  beforeAll(async () => {
    cluster = await startCluster({ log, isEmpty: true })
  }, 60_000)
  afterAll(async () => {
    await cluster?.stop()
    await other?.drop()
  })

  const organization = () => `/v1/organizations/${cluster.owner.organizationId}`

  async function visitAll(visit: (device: number) => Promise<Visit>) {
    const visits: Visit[] = []
    for (const device of devices) visits.push(await visit(device))
    const visitors = await Promise.all(visits.map((one) => visitorOf(cluster, one)))
    return { visits, visitors }
  }

  /** Everything that a back end can read. */
  async function everything({ visits, visitors }: Awaited<ReturnType<typeof visitAll>>) {
    const paths = [
      '/v1/sessions?limit=100',
      '/v1/fingerprints?limit=100',
      organization(),
      `${organization()}/api-keys`,
      ...visits.map(({ sessionId }) => `/v1/sessions/${sessionId}`),
      ...visitors.map((id) => `/v1/fingerprints/${id}`),
    ]
    return withoutUse(await Promise.all(paths.map((one) => cluster.read(one))))
  }

  async function lose(): Promise<void> {
    const { KAFKA_BROKERS: brokers = '', KAFKA_TOPIC_PREFIX: prefix = '' } = cluster.settings
    await cluster.kill(0)
    if (log === 'kafka') {
      await deleteRecords(brokers.split(','), prefix + collectTopic)
      other = await createTestDatabase({ empty: true })
      cluster.settings.DATABASE_URL = other.url
      return
    }
    const { rows } = await cluster.pool.query<{ name: string }>(
      "select quote_ident(nspname) as name from pg_namespace where nspname !~ '^(pg_|information_schema|public|tidegate_log)'",
    )
    for (const { name } of rows) await cluster.pool.query(`drop schema ${name} cascade`)
    await cluster.pool.query('delete from tidegate_log.records where topic = $1', [collectTopic])
  }

  /** The documented commands before and after the loss. */
  async function steps() {
    const backup = path.join(folder, 'data-keys')
    const [save = [], putBack = []] = await documentedSteps(
      'docs/guide/retention.md',
      'Key store',
      {
        '/backups/data-keys-2026-11-23': backup,
      },
    )
    expect(putBack).toEqual(['data-keys', 'restore', backup])
    const restoring = await documentedSteps('docs/operate/backup.md', 'Restore', {
      '<file>': backup,
    })
    expect(restoring).toEqual([putBack, ['restore']])
    return { save, putBack, restore: restoring[1] ?? [] }
  }

  it('and what clients sent has expired: everything is readable again, and every device is known', async () => {
    const before = await visitAll((device) => visitAs(cluster, device))
    expect(new Set(before.visitors).size).toBe(devices.length)
    const erased = await visitAs(cluster, devices.length)
    const erasedVisitor = await visitorOf(cluster, erased)
    const { save, putBack, restore } = await steps()
    expect(await cluster.cli(save)).toMatchObject({ code: 0 })
    await cluster.read(`${organization()}/visitors/${erasedVisitor}`, { method: 'DELETE' })
    const readable = await everything(before)

    await lose()
    const keys = await cluster.cli(putBack)
    expect(keys).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Added (\d+) of \1 keys from /),
    })
    expect(keys.stdout).toContain('WARNING: 1 session was erased after this backup')
    // With those that were stored ahead.
    expect(Number.parseInt(keys.stdout.replace('Added ', ''), 10)).toBeGreaterThanOrEqual(26)
    expect(await cluster.cli(restore)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Scoring restored 25 visitors from 25 sessions.'),
    })
    expect(await cluster.cli(['rebuild', 'scoring'])).toMatchObject({ code: 0 })
    await cluster.replace()

    expect(await everything(before)).toEqual(readable)
    expect((await cluster.ask(`/v1/sessions/${erased.sessionId}`)).status).toBe(404)
    const pool = createPool({ url: cluster.settings.DATABASE_URL ?? '' })
    const { rows } = await pool.query(
      'select session_id from tidegate_keys.session_keys where sealed_key is null',
    )
    expect(rows).toEqual([{ session_id: erased.sessionId }])
    await longAgo(
      pool,
      before.visits.map(({ sessionId }) => sessionId),
    )
    await pool.end()
    const again = await visitAll((device) => {
      const continuity = cleared.includes(device) ? undefined : before.visits[device]?.continuity
      return visitAs(cluster, device, { continuity })
    })
    expect(again.visitors).toEqual(before.visitors)
  }, 180_000)
})
