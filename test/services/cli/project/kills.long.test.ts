import { randomBytes, randomInt } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openKafkaLog } from '../../../../infra/log/kafka/log.ts'
import type { EventLog } from '../../../../infra/log/port.ts'
import { openPostgresLog } from '../../../../infra/log/postgres/log.ts'
import { eventTopics } from '../../../../schemas/events.ts'
import { startWorld, type World } from '../../../authorization/world.ts'
import { decision } from '../../../projections/world-events.ts'
import { cli, startCli } from '../../../support/cli.ts'
import { clusterLogs, kafkaPlace } from '../../../support/cluster.ts'
import { eventually } from '../../../support/eventually.ts'
import { createNumbers } from '../../../support/hand.ts'
import { deleteTopics } from '../../../support/logs.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/postgres.ts'
import { silent, testCause } from '../../../support/projections.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'

const verdicts = 'docs/examples/views/verdicts-by-page.ts'
const kills = 4
const eventsPerKill = 150
const cases = clusterLogs().flatMap((log) => [2, 12].map((partitions) => ({ log, partitions })))

// Counts decisions, so that one applied twice or not at all would show.
const counter = `export default {
  name: 'counter',
  version: 1,
  events: ['SessionScored'],
  tables: { verdicts: { columns: { verdict: 'text', decisions: 'integer' }, key: ['verdict'] } },
  handle: ({ data: { verdict } }) => [
    { table: 'verdicts', key: { verdict }, to: (row) => ({ decisions: (row?.decisions ?? 0) + 1 }) },
  ],
}
`

describe.each(cases)('views on $log with $partitions partitions', ({ log: name, partitions }) => {
  let world: World
  const folder = temporaryFolder('kills')
  let database: TestDatabase
  let log: EventLog
  let settings: Record<string, string>
  let kafka: Awaited<ReturnType<typeof kafkaPlace>> | undefined

  // The API has its own database, which gets the same events.
  beforeAll(async () => {
    world = await startWorld()
    database = await createTestDatabase()
    const { pool, url } = database
    kafka = name === 'kafka' ? await kafkaPlace() : undefined
    log = kafka
      ? await openKafkaLog({
          brokers: kafka.brokers.split(','),
          topicPrefix: kafka.prefix,
          logger: silent,
        })
      : await openPostgresLog({ pool, url, logger: silent })
    const topics = ['SessionScored', 'VisitorErased', 'OrganizationDataExpired'] as const
    await log.ensureTopics(topics.map((type) => ({ topic: eventTopics[type], partitions })))
    settings = {
      DATABASE_URL: url,
      TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
      KAFKA_BROKERS: kafka?.brokers ?? '',
      KAFKA_TOPIC_PREFIX: kafka?.prefix ?? '',
    }
  }, 120_000)
  afterAll(async () => {
    await log?.close()
    if (kafka) await deleteTopics(kafka.brokers.split(','), kafka.prefix)
    await database?.drop()
    await world?.stop()
  })

  test('match the API after kills at random moments', async () => {
    const seed = randomInt(2 ** 32)
    console.log(`kills of views on ${name}, ${partitions} partitions: seed ${seed}`)
    const random = createNumbers(seed)
    const file = path.join(folder, 'counter.ts')
    await writeFile(file, counter)
    const organizationId = await world.organization('Killed')
    const key = await world.issue({ organizationId, type: 'secret', scopes: ['*'] })
    const appended = new Map<string, number>()

    // Three decisions per session on average.
    async function append(from: number): Promise<void> {
      const events = Array.from({ length: eventsPerKill }, (_, i) =>
        decisionOf(from + i, { organizationId, now: world.now.ms, random }),
      )
      for (const { event } of events) {
        const { verdict } = event.data
        appended.set(verdict, (appended.get(verdict) ?? 0) + 1)
      }
      const { codec } = world.deps
      const records = events.map(({ event, meta }) =>
        codec.toRecordWithCause(event, meta, testCause),
      )
      for (const eventLog of [world.log, log]) await eventLog.append(records)
    }

    for (let n = 0; n < kills; n++) {
      const running = [verdicts, file].map((view) => startCli(['project', view], settings))
      const aim = Math.floor((n + random()) * eventsPerKill)
      await append(n * eventsPerKill)
      await eventually(async () => expect(await counted()).toBeGreaterThanOrEqual(aim), {
        timeoutMs: 60_000,
        intervalMs: 5,
      })
      for (const child of running) child.kill('SIGKILL')
      await Promise.all(running.map(({ result }) => result))
    }
    for (const view of [verdicts, file])
      expect(await cli(['project', view, '--once'], settings)).toMatchObject({ code: 0 })

    expect(await linesOf('select verdict, decisions from view_counter.verdicts')).toEqual(
      [...appended].map(([verdict, count]) => `${verdict} ${count}`).sort(),
    )
    const ofView = await linesOf(
      'select day, page_host, verdict, sessions from view_verdicts_by_page.verdicts_a_day',
    )
    expect(ofView.length).toBeGreaterThan(4)
    await eventually(async () => expect(ofView).toEqual(await ofApi(key.revealedKey)), {
      timeoutMs: 30_000,
    })
  }, 480_000)

  async function counted(): Promise<number> {
    const sql = 'select coalesce(sum(decisions), 0)::integer as n from view_counter.verdicts'
    const { rows } = await database.pool
      .query<{ n: number }>(sql)
      .catch(() => ({ rows: [{ n: -1 }] }))
    return rows[0]?.n ?? -1
  }

  async function linesOf(sql: string): Promise<string[]> {
    const { rows } = await database.pool.query<{ line: string }>(
      `select concat_ws(' ', variadic array(select value from json_each_text(row_to_json(t)))) as line from (${sql}) t`,
    )
    return rows.map(({ line }) => line).sort()
  }

  async function ofApi(secretKey: string): Promise<string[]> {
    const url = '/v1/sessions/aggregates?group_by=page_host,verdict&interval=day&top=100'
    const headers = { authorization: `Bearer ${secretKey}` }
    const { statusCode, body } = await world.app.inject({ url, headers })
    expect(statusCode, body).toBe(200)
    const { data }: { data: { groups: Group[] } } = JSON.parse(body)
    return data.groups
      .map(({ start, values, sessions }) =>
        [start.slice(0, 10), values.page_host, values.verdict, sessions].join(' '),
      )
      .sort()
  }
})

interface Group {
  start: string
  values: Record<string, string>
  sessions: number
}

interface Deciding {
  organizationId: string
  now: number
  random: () => number
}

function decisionOf(n: number, { organizationId: organization_id, now, random }: Deciding) {
  const made = decision(n, {
    organization_id,
    session: Math.floor(random() * 200),
    evaluated_at: now - 1_000_000 + n,
    verdict: random() < 0.3 ? 'bot' : 'human',
  })
  const { event } = made
  if (event.type !== 'SessionScored') throw new Error('no decision')
  const url = `https://shop-${event.data.session_id.slice(-1)}.example/`
  const data = { ...event.data, request: { ...event.data.request, url } }
  return { ...made, event: { type: 'SessionScored', data } as const }
}
