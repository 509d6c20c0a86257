import { randomBytes } from 'node:crypto'
import { cp, rm } from 'node:fs/promises'
import path from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openKafkaLog } from '../../infra/log/kafka/log.ts'
import { kafkaPlace, type Owner, operator } from '../support/cluster.ts'
import { readAs, type Visit, visitAs } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { type KafkaBroker, startKafkaBroker } from '../support/kafka-broker.ts'
import { deleteRecords, deleteTopics } from '../support/logs.ts'
import { needs } from '../support/needs.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'

const logger = pino({ level: 'silent' })
const topic = 'tidegate.collect.v1'

async function readiness({ baseUrl }: ServerProcess): Promise<string> {
  const answer = await fetch(`${baseUrl}/readyz`)
  const { error }: { error?: { message: string } } = JSON.parse(await answer.text())
  return `${answer.status} ${error?.message ?? 'ok'}`
}

needs('kafka-jars').describe('a Kafka that comes back as an older copy of itself', () => {
  let database: TestDatabase
  let broker: KafkaBroker
  let settings: Record<string, string>
  let owner: Owner
  let server: ServerProcess
  let collector: ServerProcess
  const acknowledged: Visit[] = []

  beforeAll(async () => {
    database = await createTestDatabase()
    broker = await startKafkaBroker({ logger })
    settings = {
      DATABASE_URL: database.url,
      TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
      KAFKA_BROKERS: broker.brokers,
      KAFKA_TOPIC_PREFIX: '',
    }
    await start()
    owner = await operator(settings).organization()
  }, 300_000)

  afterAll(async () => {
    await Promise.all([server?.end('SIGKILL'), collector?.end('SIGKILL')])
    await broker?.stop()
    await database?.drop()
  })

  async function start(): Promise<void> {
    server = await startServerProcess(['serve'], settings)
    collector = await startServerProcess(['serve', '--roles', 'collect'], settings)
  }

  const visit = async (at: ServerProcess) => {
    acknowledged.push(await visitAs(acknowledged.length, { baseUrl: at.baseUrl, owner }))
  }
  const refused = async (at: ServerProcess) => {
    const before = acknowledged.length
    await visit(at).catch(() => {})
    expect(acknowledged).toHaveLength(before)
  }
  const copyOf = (name: string) => path.join(broker.dataDir, name)
  const save = (name: string) => cp(copyOf('log'), copyOf(name), { recursive: true })
  async function replaceBy(name: string): Promise<void> {
    await rm(copyOf('log'), { recursive: true })
    await cp(copyOf(name), copyOf('log'), { recursive: true })
  }
  const allAreRead = () =>
    eventually(async () => {
      for (const { sessionId } of acknowledged)
        await readAs({ baseUrl: server.baseUrl, owner }, `/v1/sessions/${sessionId}`)
    })

  it('takes no appends until a start finds all records there, and loses nothing', async () => {
    for (let i = 0; i < 8; i++) await visit(i % 2 === 0 ? server : collector)
    await broker.kill()
    await save('older')
    await broker.restart()
    await eventually(async () => expect(await readiness(server)).toBe('200 ok'), {
      timeoutMs: 60_000,
    })
    for (let i = 0; i < 8; i++) await visit(i % 2 === 0 ? server : collector)
    await allAreRead()

    await broker.kill()
    await save('whole')
    // Both find that it is away.
    await Promise.all([refused(server), refused(collector)])
    await replaceBy('older')
    await broker.restart()
    const notReady = /^503 Not ready: .*log_position \(.*restored from an older copy/
    for (const at of [server, collector])
      await eventually(
        async () => {
          await refused(at)
          expect(await readiness(at)).toMatch(notReady)
        },
        { timeoutMs: 60_000, intervalMs: 200 },
      )

    // The log outgrows what was read of it.
    const log = await openKafkaLog({ brokers: [broker.brokers], logger })
    const others = Array.from({ length: 500 }, (_, i) => ({
      topic,
      key: `key${i}`,
      value: Buffer.from('foreign'),
      headers: {},
    }))
    await log.append(others)
    await log.close()
    for (const at of [server, collector]) {
      await refused(at)
      expect(await readiness(at)).toMatch(notReady)
    }
    await server.end('SIGTERM')
    await expect(startServerProcess(['serve'], settings)).rejects.toThrow(
      /restored from an older copy/,
    )

    await broker.kill()
    await replaceBy('whole')
    await broker.restart()
    // It saw the damage, and may have stood still before.
    await refused(collector)
    await collector.end('SIGTERM')
    await start()
    await visit(server)
    await visit(collector)
    expect(await readiness(server)).toBe('200 ok')
    await allAreRead()
  }, 600_000)
})

needs('kafka').describe('records that have expired', () => {
  it('are not missing', async () => {
    const database = await createTestDatabase()
    const { brokers, prefix } = await kafkaPlace()
    const settings = {
      DATABASE_URL: database.url,
      TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
      KAFKA_BROKERS: brokers,
      KAFKA_TOPIC_PREFIX: prefix,
    }
    let server = await startServerProcess(['serve'], settings)
    const owner = await operator(settings).organization()
    const visit = (device: number) => visitAs(device, { baseUrl: server.baseUrl, owner })
    for (let device = 0; device < 4; device++) await visit(device)
    await deleteRecords(brokers.split(','), prefix + topic)
    const deletedAt = Date.now()
    await eventually(
      async () => {
        const { rows } = await database.pool.query(
          `select from tidegate.bound_log where (marks->>'time')::float8 > $1`,
          [deletedAt],
        )
        expect(rows).not.toHaveLength(0)
      },
      { timeoutMs: 60_000, intervalMs: 200 },
    )
    expect(await readiness(server)).toBe('200 ok')
    await visit(4)
    await server.end('SIGTERM')
    server = await startServerProcess(['serve'], settings)
    await visit(5)
    expect(await readiness(server)).toBe('200 ok')
    await server.end('SIGTERM')
    await deleteTopics(brokers.split(','), prefix)
    await database.drop()
  }, 300_000)
})
