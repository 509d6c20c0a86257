import { once } from 'node:events'
import { createServer } from 'node:net'
import kafkajs from 'kafkajs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createKafkaClient } from '../../infra/log/kafka/client.ts'
import { cli } from '../support/cli.ts'
import { createInstallation, type Installation, readinessOf } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { needs } from '../support/needs.ts'
import { silent } from '../support/projections.ts'

// A probe that succeeded is not made again for five seconds.
const patient = { timeoutMs: 20_000, intervalMs: 100 }

const isReady = (baseUrl: string, expected: string | RegExp) =>
  eventually(async () => expect(await readinessOf(baseUrl)).toMatch(expected), patient)

describe('a server whose stores answer questions', () => {
  needs('kafka').it(
    'is not ready while Kafka takes no records',
    async () => {
      const installation = await createInstallation({ log: 'kafka' })
      const { KAFKA_BROKERS = '', KAFKA_TOPIC_PREFIX } = installation.settings
      const server = await installation.serve('collect')
      expect(server.output()).toMatch(/a topic has a replication factor of 1/)
      const limitBytes = async (bytes: number) => {
        const kafka = createKafkaClient({ brokers: KAFKA_BROKERS.split(','), logger: silent })
        const admin = kafka.admin()
        await admin.connect()
        const configEntries = [{ name: 'max.message.bytes', value: String(bytes) }]
        const name = `${KAFKA_TOPIC_PREFIX}tidegate.probe.v1`
        const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name, configEntries }]
        await admin.alterConfigs({ validateOnly: false, resources })
        await admin.disconnect()
      }
      await limitBytes(1)
      await isReady(server.baseUrl, /^503 Not ready: log\.$/)
      await limitBytes(100_000)
      await isReady(server.baseUrl, '200 ok')
      await installation.stop()
    },
    60_000,
  )

  it('is not ready while the database takes no writes, and is again', async () => {
    const installation = await createInstallation()
    const { baseUrl } = await installation.serve('collect')
    await isReady(baseUrl, '200 ok')
    const name = new URL(installation.settings.DATABASE_URL ?? '').pathname.slice(1)
    const client = await installation.pool.connect()
    const readOnly = async (state: 'on' | 'off') => {
      await client.query(`alter database ${name} set default_transaction_read_only = ${state}`)
      await client.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()',
        [name],
      )
    }
    await readOnly('on')
    await isReady(baseUrl, /^503 Not ready: .*database/)
    await readOnly('off')
    await isReady(baseUrl, '200 ok')
    client.release()
    await installation.stop()
  }, 60_000)
})

describe('a server whose port is taken', () => {
  const taken = createServer()
  let installation: Installation
  let port = ''
  beforeAll(async () => {
    installation = await createInstallation()
    await once(taken.listen(0, '127.0.0.1'), 'listening')
    const address = taken.address()
    port = typeof address === 'object' ? String(address?.port) : ''
  })
  afterAll(async () => {
    taken.close()
    await installation.stop()
  })

  /** Returns the message of the last line that a failing start logs. */
  async function refusal(env: Record<string, string>): Promise<string> {
    const start = ['serve', '--roles', 'api']
    const { code, stdout } = await cli(start, { ...installation.settings, PORT: port, ...env })
    expect(code).toBe(1)
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '').msg
  }

  it('says so where all else is right', async () => {
    expect(await refusal({})).toContain(`Port ${port} on 127.0.0.1 is in use`)
  })

  it.each([
    ['settings', { TIDEGATE_MASTER_KEYS: 'short' }, /TIDEGATE_MASTER_KEYS/],
    ['a list of addresses', { REPUTATION_LISTS: 'spam=/nowhere/drop.txt' }, /REPUTATION_LISTS/],
  ])('reports wrong %s first', async (_, env, message) => {
    expect(await refusal(env)).toMatch(message)
  })

  it('reports a wrong database first', async () => {
    const { href } = new URL('/nowhere', installation.settings.DATABASE_URL)
    expect(await refusal({ DATABASE_URL: href })).toContain('database "nowhere" does not exist')
  })
})
