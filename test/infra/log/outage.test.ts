import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { startEmbeddedPostgres } from '../../../infra/local/embedded-postgres.ts'
import { freePort } from '../../../infra/local/free-port.ts'
import { openKafkaLog } from '../../../infra/log/kafka/log.ts'
import { LogUnavailable } from '../../../infra/log/port.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { eventually } from '../../support/eventually.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { expectDown, record, topic, whileConsuming } from './outage.ts'

const logger = pino({ level: 'silent' })
const folder = temporaryFolder('outage')

describe('an outage of the log', { timeout: 90_000 }, () => {
  test('postgres: appends fail during an outage; afterwards they and a running consumer resume', async () => {
    const server = { dataDir: path.join(folder, 'postgres'), port: await freePort(), logger }
    const postgres = await startEmbeddedPostgres(server)
    const pool = createPool({ url: postgres.url })
    const log = await openPostgresLog({ pool, url: postgres.url, logger })
    await log.ensureTopics([{ topic, partitions: 3 }])
    await whileConsuming(log, async (values, errors) => {
      await log.append([record('before')])
      await eventually(() => expect(values).toEqual(['before']))
      await postgres.stop()
      await expectDown(log)
      await eventually(() => expect(errors.length).toBeGreaterThan(2))
      await delay(1000)
      // Backoff: 100, 200, 400, 800 ms.
      expect(errors.length).toBeLessThan(10)
      const again = await startEmbeddedPostgres(server)
      await eventually(() => log.append([record('after')]))
      await eventually(() => expect(values).toContain('after'), { timeoutMs: 20_000 })
      await log.close()
      await pool.end()
      await again.stop()
    })
  })

  test('kafka: requests reject if no broker listens', async () => {
    const log = await openKafkaLog({ brokers: [`127.0.0.1:${await freePort()}`], logger })
    await expectDown(log)
    await expect(
      log.consume({ group: 'g', topics: [topic], handle: async () => undefined }),
    ).rejects.toThrow(LogUnavailable)
    await log.close()
  })

  test('postgres: another process takes over the group of a killed one within seconds', async () => {
    const database = await createTestDatabase()
    const log = await openPostgresLog({ ...database, logger })
    await log.ensureTopics([{ topic, partitions: 4 }])
    const keys = Array.from({ length: 20 }, (_, i) => `key-${i}`)
    const script = path.join(import.meta.dirname, 'log-member.ts')
    const member = spawn(process.execPath, [script, database.url, 'readers', topic], {
      stdio: 'pipe',
    })
    let printed = ''
    member.stdout.on('data', (chunk) => {
      printed += chunk
    })
    await log.append(keys.map(record))
    await eventually(() => expect(printed).toContain('key-'), { timeoutMs: 20_000 })
    await whileConsuming(log, async (values) => {
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
