import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { kafkaPlace, operator } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { deleteTopics } from '../support/logs.ts'
import { needs } from '../support/needs.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'

const roles = ['serve', '--roles', 'collect']

needs('kafka').describe('two databases on one Kafka prefix', () => {
  const databases: TestDatabase[] = []
  const started: ServerProcess[] = []
  let production: Record<string, string>
  let staging: Record<string, string>
  let place: Awaited<ReturnType<typeof kafkaPlace>>

  beforeAll(async () => {
    place = await kafkaPlace()
    const settings = async () => {
      const database = await createTestDatabase()
      databases.push(database)
      return {
        DATABASE_URL: database.url,
        TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
        KAFKA_BROKERS: place.brokers,
        KAFKA_TOPIC_PREFIX: place.prefix,
      }
    }
    production = await settings()
    staging = await settings()
  }, 120_000)

  afterAll(async () => {
    await Promise.all(started.map((server) => server.end('SIGKILL')))
    await deleteTopics(place.brokers.split(','), place.prefix)
    for (const database of databases) await database.drop()
  })

  async function start(
    settings: Record<string, string>,
    ...args: string[]
  ): Promise<ServerProcess> {
    const server = await startServerProcess([...roles, ...args], settings)
    started.push(server)
    return server
  }

  async function readiness({ baseUrl }: ServerProcess): Promise<number> {
    return (await fetch(`${baseUrl}/readyz`)).status
  }

  const isStopped = async (server: ServerProcess, database: string) => {
    await eventually(
      () =>
        expect(server.output()).toMatch(/the server stops: The log belongs to another database/),
      {
        timeoutMs: 60_000,
        intervalMs: 100,
      },
    )
    expect(server.output()).toContain(database)
    // The signal comes to a process that is stopping or gone.
    expect(await server.exit).toBe(1)
  }
  const nameOf = ({ DATABASE_URL: url = '' }: Record<string, string>) =>
    new URL(url).pathname.slice(1)

  it('are not both served: the later one stops itself and names the holder', async () => {
    const first = await start(production)
    // Processes of one installation share the claim.
    const second = await start(production)
    await expect(start(staging)).rejects.toThrow(
      new RegExp(
        `ended with 1 .*The log belongs to another database: .*${nameOf(production)}`,
        's',
      ),
    )
    expect([await readiness(first), await readiness(second)]).toEqual([200, 200])
    // A crash leaves the claim to the same database.
    await Promise.all([first.end('SIGKILL'), second.end('SIGKILL')])
    expect(await readiness(await start(production))).toBe(200)
  }, 180_000)

  it('change places by a take-over, which stops the servers of the former one', async () => {
    const former = await start(production)
    const next = await start(staging, '--take-over-log')
    await isStopped(former, nameOf(staging))
    expect(await readiness(next)).toBe(200)
    await expect(start(production)).rejects.toThrow(/The log belongs to another database/)
    // A restore takes the log over from the lost database.
    expect(await operator(production).cli(['restore'])).toMatchObject({ code: 0 })
    await isStopped(next, nameOf(production))
    expect(await readiness(await start(production))).toBe(200)
  }, 240_000)

  it('start at once on a new prefix, and one of them is refused', async () => {
    const prefix = `${place.prefix}new.`
    const both = await Promise.allSettled(
      [production, staging].map(async (settings) => {
        const database = await createTestDatabase()
        databases.push(database)
        return start({ ...settings, DATABASE_URL: database.url, KAFKA_TOPIC_PREFIX: prefix })
      }),
    )
    const serving = async () => {
      const servers = both.flatMap((outcome) =>
        outcome.status === 'fulfilled' ? [outcome.value] : [],
      )
      return servers.filter(({ output }) => !output().includes('the server stops'))
    }
    await eventually(async () => expect(await serving()).toHaveLength(1), {
      timeoutMs: 60_000,
      intervalMs: 100,
    })
  }, 180_000)
})
