import { tmpdir } from 'node:os'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type DebianPostgres, startDebianPostgres } from '../../support/debian-postgres.ts'
import { type KafkaBroker, startKafkaBroker } from '../../support/kafka-broker.ts'
import { kafkaTestLog, postgresTestLog } from '../../support/logs.ts'
import { needs } from '../../support/needs.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'
import { supported } from '../../support/supported-versions.ts'
import { describeLog } from './contract.ts'

// Other tests run on the Kafka version in kafka-pom.xml.
needs('kafka-jars').describe.each(supported.kafka)('Kafka %s', (version) => {
  let broker: KafkaBroker
  beforeAll(async () => {
    broker = await startKafkaBroker({ version, logger: pino({ level: 'warn' }) })
  }, 300_000)
  afterAll(() => broker?.stop())

  describeLog(
    'as the log',
    kafkaTestLog(() => broker.brokers),
  )
})

async function versionOf({ pool }: TestDatabase): Promise<number> {
  const { rows } = await pool.query<{ server_version: string }>('show server_version')
  return Number.parseInt(rows[0]?.server_version ?? '', 10)
}

const [oldest, newest] = supported.postgresql

// The oldest supported version is that of Debian 12.
needs('postgresql').describe("Debian's PostgreSQL", () => {
  let postgres: DebianPostgres
  const createDatabase = () => createTestDatabase({ empty: true, server: postgres.url })
  beforeAll(async () => {
    postgres = await startDebianPostgres({ within: tmpdir() })
  }, 120_000)
  afterAll(() => postgres?.stop())

  test('is a supported version', async () => {
    const database = await createDatabase()
    expect(await versionOf(database)).toBeGreaterThanOrEqual(Number(oldest))
    await database.drop()
  })

  describeLog('as the log', postgresTestLog(createDatabase))
})

describe('the PostgreSQL of the packages', () => {
  test('is the newest supported version', async () => {
    const database = await createTestDatabase()
    expect(await versionOf(database)).toBe(Number(newest))
    await database.drop()
  })

  describeLog('as the log', postgresTestLog())
})
