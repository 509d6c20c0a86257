import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pino } from 'pino'
import { afterEach, describe, expect, it } from 'vitest'
import { readConfig } from '../../infra/config.ts'
import { openKafkaImport } from '../../infra/log/kafka/import.ts'
import { openKafkaLog } from '../../infra/log/kafka/log.ts'
import { projections, topicSpecs } from '../../services/server/dependencies.ts'
import {
  lastingRows,
  releaseFiles,
  releaseRecords,
  unpackDataDirectory,
} from '../fixtures/release.ts'
import { cli } from '../support/cli.ts'
import { createInstallation, readinessOf } from '../support/cluster.ts'
import { needs } from '../support/needs.ts'
import { rebuildIsEqual } from '../support/roles.ts'
import { startTidegate } from '../support/tidegate.ts'

let undo = new AsyncDisposableStack()
afterEach(async () => {
  await undo.disposeAsync()
  undo = new AsyncDisposableStack()
})

async function unpackedDataDirectory(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-release-'))
  undo.defer(() => rm(folder, { recursive: true, force: true }))
  await unpackDataDirectory(folder)
  return folder
}

const textOf = async (folder: string, name: string) =>
  (await readFile(path.join(folder, name), 'utf8')).trim()

/** All rows that the release had are there; schedulers may have added some since. */
async function hasRowsOfRelease(databaseUrl: string): Promise<void> {
  const expected: Record<string, unknown[]> = JSON.parse(await readFile(releaseFiles.rows, 'utf8'))
  const found = await lastingRows(databaseUrl)
  for (const [view, rows] of Object.entries(expected)) {
    expect(rows.length, view).toBeGreaterThan(0)
    expect(found[view], view).toEqual(expect.arrayContaining(rows))
  }
}

// The schedulers delete what has been kept for long enough, whatever the day of the test.
const forEver = { GATE_RETENTION_DAYS: '36500', COLLECT_RETENTION_DAYS: '36500' }

describe('what 0.1.0 left', () => {
  it('is a data directory that starts, reads the same, takes sessions, and is rebuilt the same', async () => {
    const dataDir = await unpackedDataDirectory()
    const server = await startTidegate({ dataDir, env: forEver })
    const settings = {
      DATA_DIR: dataDir,
      ...forEver,
      DATABASE_URL: await textOf(dataDir, 'database-url'),
      TIDEGATE_MASTER_KEYS: await textOf(dataDir, 'master-keys'),
    }
    await hasRowsOfRelease(settings.DATABASE_URL)
    expect(await readinessOf(server.baseUrl)).toBe('200 ok')
    expect(await cli(['simulate', '--sessions', '3', '--verify'], settings)).toMatchObject({
      code: 0,
    })
    for (const { name } of projections) await rebuildIsEqual(settings, name)
    expect(await server.stop()).toBe(0)
  }, 180_000)

  const { it: onKafka } = needs('kafka')
  onKafka(
    'is a log on Kafka that read models are built from',
    async () => {
      const dataDir = await unpackedDataDirectory()
      const TIDEGATE_MASTER_KEYS = await textOf(dataDir, 'master-keys')
      const env = { ...forEver, TIDEGATE_MASTER_KEYS }
      const installation = await createInstallation({ log: 'kafka', isEmpty: true, env })
      undo.defer(() => installation.stop())
      const { settings, cli: run } = installation
      await importRecords({
        brokers: (settings.KAFKA_BROKERS ?? '').split(','),
        topicPrefix: settings.KAFKA_TOPIC_PREFIX ?? '',
      })
      expect(await run(['data-keys', 'restore', releaseFiles.dataKeys])).toMatchObject({ code: 0 })
      expect(await run(['restore'])).toMatchObject({ code: 0 })
      const { baseUrl } = await installation.serve()
      await hasRowsOfRelease(settings.DATABASE_URL ?? '')
      expect(await readinessOf(baseUrl)).toBe('200 ok')
    },
    180_000,
  )
})

async function importRecords(place: { brokers: string[]; topicPrefix: string }): Promise<void> {
  const options = { ...place, logger: pino({ level: 'silent' }) }
  await using stack = new AsyncDisposableStack()
  const log = await openKafkaLog(options)
  stack.defer(() => log.close())
  await log.ensureTopics(topicSpecs(readConfig({})))
  const kafka = await openKafkaImport(options)
  stack.defer(() => kafka.close())
  await kafka.append(releaseRecords())
}
