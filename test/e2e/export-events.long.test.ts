import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { eventTopics } from '../../schemas/events.ts'
import { cli } from '../support/cli.ts'
import { clusterLogs, kafkaPlace } from '../support/cluster.ts'
import { duckDb } from '../support/duckdb.ts'
import { killExport } from '../support/exports.ts'
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
      DATABASE_URL: database.url,
      TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
      KAFKA_BROKERS: kafka?.brokers ?? '',
      KAFKA_TOPIC_PREFIX: kafka?.prefix ?? '',
      LOG_LEVEL: 'error',
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

  it('that was killed has each once when it is run again', async () => {
    const file = path.join(folder, 'events.parquet')
    const exporting = ['export', 'events', '--topic', topic, '--out', file, '--json']
    for (let kills = 0; kills < 2; kills++) {
      await killExport(exporting, { settings, file })
      await append(20)
    }
    const ended = await cli(exporting, settings)
    expect(ended, ended.stderr).toMatchObject({ code: 0 })
    expect(JSON.parse(ended.stdout).data).toMatchObject({
      file,
      format: 'parquet',
      rows: appended.count,
    })
    expect(await readdir(folder)).toEqual(['events.parquet'])
    const found = await duckDb(
      `select count(*), count(distinct (partition, "offset")), count(distinct event_id),
        sum(coalesce(json_extract(data, '$.risk_score')::double, 0)) from '${file}'`,
    )
    expect(found).toEqual([[appended.count, appended.count, appended.count, appended.risk]])
    const types = await duckDb(`select type, count(*) from '${file}' group by 1 order by 1`)
    expect(types).toEqual([...appended.types].toSorted())
    const holes = await duckDb(
      `select partition from '${file}' group by 1 having min("offset") <> 0 or max("offset") <> count(*) - 1`,
    )
    expect(holes).toEqual([])
  }, 600_000)
})
