import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { eventTopics } from '../../schemas/events.ts'
import { cli } from '../support/cli.ts'
import { clusterLogs, kafkaPlace } from '../support/cluster.ts'
import { duckDb } from '../support/duckdb.ts'
import { killExport, manifestIn, unfinishedIn } from '../support/exports.ts'
import { deleteTopics } from '../support/logs.ts'
import { needs } from '../support/needs.ts'
import { type EventWriter, openEventWriter, pastEvents } from '../support/past-events.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'

const { describe, it } = needs('python-duckdb')
const sessions = 10_000
const topic = eventTopics.SessionScored
const owner = { organizationId: `org_${'1'.padStart(26, '0')}` }

describe.each(clusterLogs())('an export of events on %s', (name) => {
  let folder: string
  let database: TestDatabase
  let kafka: Awaited<ReturnType<typeof kafkaPlace>> | undefined
  let settings: Record<string, string>
  let writer: EventWriter
  let written = 0
  const appended = { count: 0, risk: 0, types: new Map<string, number>() }

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-export-'))
    database = await createTestDatabase({ empty: true })
    kafka = name === 'kafka' ? await kafkaPlace() : undefined
    settings = {
      ...{ DATABASE_URL: database.url, TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64') },
      ...{ KAFKA_BROKERS: kafka?.brokers ?? '', KAFKA_TOPIC_PREFIX: kafka?.prefix ?? '', LOG_LEVEL: 'error' },
    }
    expect(await cli(['migrate'], settings)).toMatchObject({ code: 0 })
    writer = await openEventWriter(settings)
    while (written < sessions) await append(500)
  }, 600_000)
  afterAll(async () => {
    await writer?.close()
    if (kafka) await deleteTopics(kafka.brokers.split(','), kafka.prefix)
    await database?.drop()
    if (folder) await rm(folder, { recursive: true, force: true })
  })

  async function append(count: number): Promise<void> {
    const events = pastEvents(owner, { from: written, count, start: Date.UTC(2024, 0, 1) })
    written += count
    await writer.append(events)
    for (const { type, data } of events) {
      appended.count += 1
      appended.risk += 'risk_score' in data ? data.risk_score : 0
      appended.types.set(type, (appended.types.get(type) ?? 0) + 1)
    }
  }

  it('that is killed three times has each once, and none that came since it began', async () => {
    const output = path.join(folder, 'events')
    const exporting = ['export', 'events', '--topic', topic, '--output', output, '--json']
    const expected = { ...appended, types: new Map(appended.types) }
    for (const parts of [1, 2, 2]) {
      const killed = await killExport(exporting, { settings, folder: output, parts })
      expect(killed.state).toBe('unfinished')
      await append(20)
    }
    const before = await manifestIn(output)
    const ended = await cli(exporting, settings)
    expect(ended, ended.stderr).toMatchObject({ code: 0 })
    const missing = before.parts.filter(({ rows }) => rows === null).length
    expect(JSON.parse(ended.stdout).data).toMatchObject({
      ...{ state: 'whole', rows: expected.count, parts: before.parts.length, parts_made: missing },
    })
    const files = `'${output}/*.parquet'`
    const found = await duckDb(
      `select count(*), count(distinct (partition, "offset")), count(distinct event_id),
        sum(coalesce(json_extract(data, '$.risk_score')::double, 0)) from ${files}`,
    )
    expect(found).toEqual([[expected.count, expected.count, expected.count, expected.risk]])
    const types = await duckDb(`select type, count(*) from ${files} group by 1 order by 1`)
    expect(types).toEqual([...expected.types].toSorted())
    const holes = await duckDb(
      `select partition from ${files} group by 1 having min("offset") <> 0 or max("offset") <> count(*) - 1`,
    )
    expect(holes).toEqual([])
    expect(await unfinishedIn(output)).toEqual([])
  }, 600_000)
})
