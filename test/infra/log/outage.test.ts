import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { startEmbeddedPostgres } from '../../../infra/local/embedded-postgres.ts'
import { freePort } from '../../../infra/local/free-port.ts'
import { canRunKafkaJars, startKafkaBroker } from '../../../infra/local/kafka-broker.ts'
import { openKafkaLog } from '../../../infra/log/kafka/log.ts'
import { type EventLog, LogUnavailable } from '../../../infra/log/port.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { eachBatch } from '../../support/each-batch.ts'
import { eventually } from '../../support/eventually.ts'
import { isLong } from '../../support/long.ts'
import { createTestDatabase } from '../../support/postgres.ts'

const logger = pino({ level: 'silent' })
const hasJars = await canRunKafkaJars()
const topic = 'outages'
const record = (value: string) => ({ topic, key: value, value: Buffer.from(value), headers: {} })

async function expectDown(log: EventLog): Promise<void> {
  const results = await Promise.allSettled([
    log.append([record('lost?')]),
    log.check(),
    log.endPositions(topic),
  ])
  for (const result of results) {
    expect(result).toMatchObject({ status: 'rejected', reason: expect.any(LogUnavailable) })
  }
}

/** Collects values, and the errors of the consumer, until `work` is done. */
async function consumed(
  log: EventLog,
  work: (values: string[], errors: unknown[]) => Promise<void>,
): Promise<void> {
  const values: string[] = []
  const errors: unknown[] = []
  const consumer = await log.consume({
    group: 'readers',
    topics: [topic],
    handle: eachBatch(({ records }) => {
      values.push(...records.map((r) => r.value.toString()))
    }),
    onError: (error) => errors.push(error),
  })
  await work(values, errors)
  await consumer.stop()
}

describe('an outage of the log', { timeout: 90_000 }, () => {
  test('postgres: appends fail while it is down; afterwards they and a running consumer go on', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-outage-'))
    const server = { dataDir: path.join(folder, 'postgres'), port: await freePort(), logger }
    const postgres = await startEmbeddedPostgres(server)
    const pool = createPool({ url: postgres.url })
    const log = await openPostgresLog({ pool, url: postgres.url, logger })
    await log.ensureTopics([{ topic, partitions: 3 }])
    await consumed(log, async (values, errors) => {
      await log.append([record('before')])
      await eventually(() => expect(values).toEqual(['before']))
      await postgres.stop()
      await expectDown(log)
      await eventually(() => expect(errors.length).toBeGreaterThan(2))
      await delay(1000)
      // It backs off: 100, 200, 400, 800 ms.
      expect(errors.length).toBeLessThan(10)
      const again = await startEmbeddedPostgres(server)
      await eventually(() => log.append([record('after')]))
      await eventually(() => expect(values).toContain('after'), { timeoutMs: 20_000 })
      await log.close()
      await pool.end()
      await again.stop()
    })
    await rm(folder, { recursive: true })
  })

  test.runIf(isLong && hasJars)(
    'kafka: appends fail while the broker hangs; what is confirmed afterwards is stored',
    async () => {
      const broker = await startKafkaBroker({ logger })
      const log = await openKafkaLog({ brokers: [broker.brokers], logger })
      await log.ensureTopics([{ topic, partitions: 3 }])
      await consumed(log, async (values) => {
        await log.append([record('before')])
        await eventually(() => expect(values).toEqual(['before']))
        process.kill(broker.pid, 'SIGSTOP')
        await expectDown(log)
        process.kill(broker.pid, 'SIGCONT')
        await eventually(() => log.append([record('after')]), { timeoutMs: 20_000 })
        await log.append(['1', '2', '3'].map(record))
        const expected = ['before', 'after', '1', '2', '3']
        await eventually(() => expect(values).toEqual(expect.arrayContaining(expected)), {
          timeoutMs: 20_000,
        })
      })
      await log.close()
      await broker.stop()
    },
  )

  test('kafka: nobody listens', async () => {
    const log = await openKafkaLog({ brokers: [`127.0.0.1:${await freePort()}`], logger })
    await expectDown(log)
    await expect(log.consume({ group: 'g', topics: [topic], handle: async () => undefined })).rejects.toThrow(
      LogUnavailable,
    )
    await log.close()
  })

  test('postgres: a killed process leaves its group to another within seconds', async () => {
    const database = await createTestDatabase()
    const log = await openPostgresLog({ ...database, logger })
    await log.ensureTopics([{ topic, partitions: 4 }])
    const keys = Array.from({ length: 20 }, (_, i) => `key-${i}`)
    const script = path.join(import.meta.dirname, '../../support/log-member.ts')
    const member = spawn(process.execPath, [script, database.url, 'readers', topic], { stdio: 'pipe' })
    let printed = ''
    member.stdout.on('data', (chunk) => {
      printed += chunk
    })
    await log.append(keys.map(record))
    await eventually(() => expect(printed).toContain('key-'), { timeoutMs: 20_000 })
    await consumed(log, async (values) => {
      await log.append([record('standing by')])
      await eventually(() => expect(printed).toContain('standing by'))
      expect(values).toEqual([])
      member.kill('SIGKILL')
      await once(member, 'exit')
      const late = keys.map((key) => `late-${key}`)
      await log.append(late.map(record))
      await eventually(() => expect(values).toEqual(expect.arrayContaining(late)))
    })
    await log.close()
    await database.drop()
  })
})
