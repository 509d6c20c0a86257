import { randomBytes } from 'node:crypto'
import kafkajs, { type Kafka } from 'kafkajs'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createKafkaClient } from '../../infra/log/kafka/client.ts'
import { kafkaPlace } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { deleteTopics } from '../support/logs.ts'
import { needs } from '../support/needs.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'

const masterKeys = randomBytes(32).toString('base64')

// A probe that succeeded is not made again for five seconds.
const patient = { timeoutMs: 20_000, intervalMs: 100 }

const adminOf = (brokers: string) =>
  createKafkaClient({ brokers: brokers.split(','), logger: pino({ level: 'silent' }) })

async function limitBytes({ kafka, topic, bytes }: { kafka: Kafka; topic: string; bytes: number }) {
  const admin = kafka.admin()
  await admin.connect()
  const configEntries = [{ name: 'max.message.bytes', value: String(bytes) }]
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configEntries }]
  await admin.alterConfigs({ validateOnly: false, resources })
  await admin.disconnect()
}

async function readiness({ baseUrl }: ServerProcess): Promise<string> {
  const answer = await fetch(`${baseUrl}/readyz`)
  const { error }: { error?: { message: string } } = JSON.parse(await answer.text())
  return `${answer.status} ${error?.message ?? 'ok'}`
}

describe('a server whose stores answer questions', () => {
  let database: TestDatabase
  const started: ServerProcess[] = []
  beforeEach(async () => {
    database = await createTestDatabase()
  })
  afterEach(async () => {
    await Promise.all(started.splice(0).map((server) => server.end('SIGTERM')))
    await database.drop()
  })

  async function start(env: Record<string, string>): Promise<ServerProcess> {
    const server = await startServerProcess(['serve', '--roles', 'collect'], {
      DATABASE_URL: database.url,
      TIDEGATE_MASTER_KEYS: masterKeys,
      KAFKA_BROKERS: '',
      ...env,
    })
    started.push(server)
    return server
  }

  needs('kafka').it(
    'is not ready while Kafka takes no records',
    async () => {
      const { brokers, prefix } = await kafkaPlace()
      const server = await start({ KAFKA_BROKERS: brokers, KAFKA_TOPIC_PREFIX: prefix })
      expect(server.output()).toMatch(/a topic has 1 copies/)
      const config = { kafka: adminOf(brokers), topic: `${prefix}tidegate.probe.v1` }
      await limitBytes({ ...config, bytes: 1 })
      await eventually(
        async () => expect(await readiness(server)).toBe('503 Not ready: log.'),
        patient,
      )
      await limitBytes({ ...config, bytes: 100_000 })
      await eventually(async () => expect(await readiness(server)).toBe('200 ok'), patient)
      await server.end('SIGTERM')
      await deleteTopics(brokers.split(','), prefix)
    },
    60_000,
  )

  it('is not ready while the database takes no writes, and is again', async () => {
    const server = await start({})
    expect(await readiness(server)).toBe('200 ok')
    const readOnly = async (state: 'on' | 'off') => {
      const name = new URL(database.url).pathname.slice(1)
      await database.pool.query(
        `alter database ${name} set default_transaction_read_only = ${state}`,
      )
      await database.pool.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()',
        [name],
      )
    }
    await readOnly('on')
    await eventually(
      async () => expect(await readiness(server)).toMatch(/^503 Not ready: .*database/),
      patient,
    )
    await database.pool.query('set default_transaction_read_only = off')
    await readOnly('off')
    await eventually(async () => expect(await readiness(server)).toBe('200 ok'), patient)
    await server.end('SIGTERM')
  }, 60_000)
})
