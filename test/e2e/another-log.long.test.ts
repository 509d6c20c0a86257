import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, beforeAll, expect } from 'vitest'
import { openKafkaImport } from '../../infra/log/kafka/import.ts'
import { openKafkaLog } from '../../infra/log/kafka/log.ts'
import type { LogRecord } from '../../infra/log/port.ts'
import { readTopicToEnd } from '../../infra/log/read-topic.ts'
import { eventTopics } from '../../schemas/events.ts'
import { cli } from '../support/cli.ts'
import { kafkaPlace, type Owner, operator } from '../support/cluster.ts'
import { readAs, type Visit, visitAs, visitorOf } from '../support/devices.ts'
import { deleteTopics } from '../support/logs.ts'
import { needs } from '../support/needs.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { documentedSteps } from '../support/printed-commands.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'

const { describe, it } = needs('kafka')

const roles = ['serve', '--roles', 'projections']

describe('a database that read the embedded log', () => {
  let database: TestDatabase
  let embedded: Record<string, string>
  let kafka: Record<string, string>
  let place: Awaited<ReturnType<typeof kafkaPlace>>

  beforeAll(async () => {
    database = await createTestDatabase()
    place = await kafkaPlace()
    embedded = {
      DATABASE_URL: database.url,
      TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
      KAFKA_BROKERS: '',
    }
    kafka = { ...embedded, KAFKA_BROKERS: place.brokers, KAFKA_TOPIC_PREFIX: place.prefix }
    const server = await startServerProcess(roles, embedded)
    await operator(embedded).organization()
    expect((await fetch(`${server.baseUrl}/readyz`)).status).toBe(200)
    await server.end('SIGTERM')
  }, 60_000)

  afterAll(async () => {
    await deleteTopics(place.brokers.split(','), place.prefix)
    await database?.drop()
  })

  it('is not served from a Kafka, and no command runs on it there', async () => {
    const refusal = /it was embedded log \S+, and the settings lead to Kafka cluster/
    await expect(startServerProcess(roles, kafka)).rejects.toThrow(refusal)
    expect(await cli(['org', 'list'], kafka)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(refusal),
    })
    expect(await cli(['migrate'], kafka)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(refusal),
    })
    // What was read of the one is more than what is on the other.
    const [adopt = []] = await documentedSteps('docs/operate/operations.md', 'Another log')
    expect(adopt).toEqual(['migrate', '--adopt-log'])
    expect(await cli(adopt, kafka)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/The log ends at offset 0 of .*, and it was read up to/),
    })
  }, 60_000)

  it('is served from its own log again', async () => {
    const server = await startServerProcess(roles, embedded)
    expect((await fetch(`${server.baseUrl}/readyz`)).status).toBe(200)
    await server.end('SIGTERM')
  }, 60_000)
})

describe('a Kafka whose records are mirrored to another', () => {
  const masterKeys = randomBytes(32).toString('base64')
  const places: Awaited<ReturnType<typeof kafkaPlace>>[] = []
  let database: TestDatabase
  let owner: Owner
  let server: ServerProcess | undefined
  const visits: Visit[] = []
  let visitors: string[] = []

  beforeAll(async () => {
    database = await createTestDatabase({ empty: true })
    places.push(await kafkaPlace(), await kafkaPlace())
    server = await startServerProcess(['serve'], settings('first'))
    owner = await operator(settings('first')).organization()
    for (const device of [1, 2, 3]) visits.push(await visit(device))
    visitors = await Promise.all(visits.map((made) => visitorOf(reader(), made)))
  }, 120_000)

  afterAll(async () => {
    await server?.end('SIGTERM')
    for (const { brokers, prefix } of places) await deleteTopics(brokers.split(','), prefix)
    await database?.drop()
  })

  function settings(name: 'first' | 'mirror'): Record<string, string> {
    const place = places[name === 'first' ? 0 : 1]
    return {
      DATABASE_URL: database.url,
      TIDEGATE_MASTER_KEYS: masterKeys,
      KAFKA_BROKERS: place?.brokers ?? '',
      KAFKA_TOPIC_PREFIX: place?.prefix ?? '',
    }
  }
  const reader = () => ({ baseUrl: server?.baseUrl ?? '', owner })
  const visit = (device: number) => visitAs(device, reader())
  const sessions = () => readAs(reader(), '/v1/sessions?limit=100')

  async function mirrorTopics(): Promise<void> {
    const [first, second] = places.map(({ brokers, prefix }) => ({
      brokers: brokers.split(','),
      topicPrefix: prefix,
      logger: pino({ level: 'silent' }),
    }))
    if (!first || !second) throw new Error('there are not two places')
    const [from, to] = [await openKafkaLog(first), await openKafkaLog(second)]
    const mirror = await openKafkaImport(second)
    for (const topic of new Set(Object.values(eventTopics))) {
      await to.ensureTopics([{ topic, partitions: (await from.endPositions(topic)).length }])
      const records: LogRecord[] = []
      const handle = (batches: { records: LogRecord[] }[]) => {
        for (const batch of batches) records.push(...batch.records)
      }
      await readTopicToEnd({ log: from, topic, handle })
      await mirror.append(records.toSorted((a, b) => a.offset - b.offset))
      expect(await to.endPositions(topic)).toEqual(await from.endPositions(topic))
    }
    await Promise.all([from.close(), to.close(), mirror.close()])
  }

  const connected = (env: Record<string, string>) => cli(['config', 'check', '--connect'], env)

  it('is tried by config check, with the database and the master keys', async () => {
    const right = settings('first')
    const working = await connected(right)
    expect(working).toMatchObject({ code: 0, stderr: '' })
    expect(working.stdout).toMatch(
      /^database: PostgreSQL \d+.*\nlog: Kafka cluster .*\nmaster keys: they open what the database holds$/m,
    )

    const wrongKeys = { ...right, TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64') }
    const closed = await connected(wrongKeys)
    expect(closed.code).toBe(1)
    expect(closed.stdout).toMatch(
      /^log: Kafka cluster .*\nmaster keys: failed: The master keys do not open/m,
    )
    expect(closed.stdout + closed.stderr).not.toContain(wrongKeys.TIDEGATE_MASTER_KEYS)

    const away = await connected({ ...right, KAFKA_BROKERS: '127.0.0.1:1' })
    expect(away.code).toBe(1)
    expect(away.stdout).toMatch(
      /^database: PostgreSQL .*\nlog: failed: .*\nmaster keys: they open/m,
    )

    const missing = right.DATABASE_URL?.replace(/\/[^/?]+(\?|$)/, '/missing$1') ?? ''
    const wrongDatabase = await connected({ ...right, DATABASE_URL: missing })
    expect(wrongDatabase.code).toBe(1)
    expect(wrongDatabase.stdout).toMatch(/^database: failed: .*"missing" does not exist/m)
  }, 90_000)

  it('is served from the mirror once that is adopted as documented', async () => {
    const before = await sessions()
    await server?.end('SIGTERM')
    await mirrorTopics()
    const refusal = /it was Kafka cluster .*, and the settings lead to Kafka cluster/
    await expect(startServerProcess(['serve'], settings('mirror'))).rejects.toThrow(refusal)
    expect((await connected(settings('mirror'))).stdout).toMatch(
      /^log: failed: The database holds/m,
    )

    const [adopt = []] = await documentedSteps('docs/operate/operations.md', 'Another log')
    expect(await cli(adopt, settings('mirror'))).toMatchObject({ code: 0 })
    server = await startServerProcess(['serve'], settings('mirror'))
    expect(await sessions()).toEqual(before)
    expect((await fetch(`${server.baseUrl}/readyz`)).status).toBe(200)
    expect(await visitorOf(reader(), await visit(4))).not.toBe(visitors[0])
    expect(await sessions()).toHaveLength(4)
    await expect(startServerProcess(['serve'], settings('first'))).rejects.toThrow(refusal)
  }, 120_000)
})
