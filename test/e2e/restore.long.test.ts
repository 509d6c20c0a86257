import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPool } from '../../infra/postgres/pool.ts'
import {
  type ClusterOptions,
  clusterLogs,
  kafkaPlace,
  type Owner,
  operator,
} from '../support/cluster.ts'
import { readAs, type Visit, visitAs, visitorOf } from '../support/devices.ts'
import { deleteRecords, deleteTopics } from '../support/logs.ts'
import { longAgoAt } from '../support/long-ago.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { documentedSteps } from '../support/printed-commands.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'

const collectTopic = 'tidegate.collect.v1'
const devices = Array.from({ length: 25 }, (_, n) => n)
/** These come back without what their browser kept. */
const cleared = devices.filter((n) => n % 5 === 0)

describe.each(clusterLogs())('the database is lost, %s', (log: ClusterOptions['log']) => {
  const databases: TestDatabase[] = []
  let settings: Record<string, string>
  let server: ServerProcess
  let owner: Owner
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-restore-'))
    const kafka = log === 'kafka' ? await kafkaPlace() : { brokers: '', prefix: '' }
    settings = {
      TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
      KAFKA_BROKERS: kafka.brokers,
      KAFKA_TOPIC_PREFIX: kafka.prefix,
      DATABASE_URL: await newDatabase(),
    }
    server = await startServerProcess(['serve'], settings)
    owner = await operator(settings).organization()
  }, 60_000)

  afterAll(async () => {
    await server?.end('SIGTERM')
    if (log === 'kafka')
      await deleteTopics(
        (settings.KAFKA_BROKERS ?? '').split(','),
        settings.KAFKA_TOPIC_PREFIX ?? '',
      )
    for (const database of databases) await database.drop()
    await rm(folder, { recursive: true, force: true })
  })

  async function newDatabase(): Promise<string> {
    const database = await createTestDatabase({ empty: true })
    databases.push(database)
    return database.url
  }

  const visit = (device: number, continuity?: string): Promise<Visit> =>
    visitAs(device, {
      baseUrl: server.baseUrl,
      owner,
      ...(continuity !== undefined && { continuity }),
    })

  const reader = () => ({ baseUrl: server.baseUrl, owner })
  const read = (path: string) => readAs(reader(), path)
  const seenAs = (one: Visit) => visitorOf(reader(), one)

  /** Everything that a back end can read. */
  async function everything(visits: Visit[], visitors: string[]): Promise<unknown[]> {
    const details = visits.map(({ sessionId }) => `/v1/sessions/${sessionId}`)
    const people = visitors.map((id) => `/v1/fingerprints/${id}`)
    const about = `/v1/organizations/${owner.organizationId}`
    const lists = [
      '/v1/sessions?limit=100',
      '/v1/fingerprints?limit=100',
      about,
      `${about}/api-keys`,
    ]
    return await Promise.all([...lists, ...details, ...people].map(read))
  }

  async function lose(): Promise<void> {
    await server.end('SIGKILL')
    if (log === 'kafka') return loseOnKafka()
    const pool = createPool({ url: settings.DATABASE_URL ?? '' })
    const { rows } = await pool.query<{ name: string }>(
      "select quote_ident(nspname) as name from pg_namespace where nspname !~ '^(pg_|information_schema|public|tidegate_log)'",
    )
    for (const { name } of rows) await pool.query(`drop schema ${name} cascade`)
    await pool.query('delete from tidegate_log.records where topic = $1', [collectTopic])
    await pool.end()
  }

  async function loseOnKafka(): Promise<void> {
    const { KAFKA_BROKERS: brokers = '', KAFKA_TOPIC_PREFIX: prefix = '' } = settings
    await deleteRecords(brokers.split(','), prefix + collectTopic)
    settings = { ...settings, DATABASE_URL: await newDatabase() }
  }

  it('and what clients sent has expired: everything is readable again, and every device is known', async () => {
    const visits: Visit[] = []
    for (const device of devices) visits.push(await visit(device))
    const visitors = await Promise.all(visits.map(seenAs))
    expect(new Set(visitors).size).toBe(devices.length)
    const erased = await visit(devices.length)
    const erasedVisitor = await seenAs(erased)
    const backup = path.join(folder, 'data-keys')
    const inDocs = '/backups/data-keys-2026-11-23'
    const [save = [], putBack] = await documentedSteps('docs/guide/privacy.md', 'Key store', {
      [inDocs]: backup,
    })
    expect(putBack).toEqual(['data-keys', 'restore', backup])
    const restoreSteps = await documentedSteps('docs/operate/operations.md', 'Restore', {
      '<file>': backup,
    })
    expect(restoreSteps).toEqual([putBack, ['restore']])
    expect(await operator(settings).cli(save)).toMatchObject({ code: 0 })
    const gone = await fetch(
      `${server.baseUrl}/v1/organizations/${owner.organizationId}/visitors/${erasedVisitor}`,
      {
        method: 'DELETE',
        headers: { authorization: `Bearer ${owner.secret.key}` },
      },
    )
    expect(gone.status).toBe(200)
    const before = await everything(visits, visitors)

    await lose()
    const [dataKeys = [], everythingElse = []] = restoreSteps
    const keys = await operator(settings).cli(dataKeys)
    expect(keys).toMatchObject({ code: 0, stdout: expect.stringMatching(/^(\d+) of \1 keys of /) })
    expect(keys.stdout).toContain('WARNING: the file is older than erasures of 1 sessions')
    // With those that were stored ahead.
    expect(Number.parseInt(keys.stdout, 10)).toBeGreaterThanOrEqual(26)
    const restored = await operator(settings).cli(everythingElse)
    expect(restored).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Scoring knows 25 visitors of 25 sessions.'),
    })
    expect(await operator(settings).cli(['rebuild', 'scoring'])).toMatchObject({ code: 0 })
    server = await startServerProcess(['serve'], settings)

    expect(await everything(visits, visitors)).toEqual(before)
    await expect(read(`/v1/sessions/${erased.sessionId}`)).rejects.toThrow('404')
    const pool = createPool({ url: settings.DATABASE_URL ?? '' })
    const { rows } = await pool.query(
      'select session_id from tidegate_keys.session_keys where sealed_key is null',
    )
    await pool.end()
    expect(rows).toEqual([{ session_id: erased.sessionId }])
    const ids = visits.map(({ sessionId }) => sessionId)
    await longAgoAt(settings.DATABASE_URL ?? '', ids)
    const returned: Visit[] = []
    for (const device of devices)
      returned.push(
        await visit(device, cleared.includes(device) ? undefined : visits[device]?.continuity),
      )
    const again = await Promise.all(returned.map(seenAs))
    expect(again.filter((id, device) => id === visitors[device]).length).toBe(25)
  }, 180_000)
})
