import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect } from 'vitest'
import { cli } from '../support/cli.ts'
import { kafkaPlace, operator } from '../support/cluster.ts'
import { deleteTopics } from '../support/logs.ts'
import { needs } from '../support/needs.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { documentedSteps } from '../support/printed-commands.ts'
import { startServerProcess } from '../support/server-process.ts'

const { describe, it } = needs('kafka')

const roles = ['serve', '--roles', 'projections']

describe('a database that read the embedded log', () => {
  let database: TestDatabase
  let embedded: Record<string, string>
  let kafka: Record<string, string>
  let place: Awaited<ReturnType<typeof kafkaPlace>>

  beforeAll(async () => {
    database = await createTestDatabase()
    place = await kafkaPlace()
    embedded = {
      DATABASE_URL: database.url,
      TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
      KAFKA_BROKERS: '',
    }
    kafka = { ...embedded, KAFKA_BROKERS: place.brokers, KAFKA_TOPIC_PREFIX: place.prefix }
    const server = await startServerProcess(roles, embedded)
    await operator(embedded).organization()
    expect((await fetch(`${server.baseUrl}/readyz`)).status).toBe(200)
    await server.end('SIGTERM')
  }, 60_000)

  afterAll(async () => {
    await deleteTopics(place.brokers.split(','), place.prefix)
    await database?.drop()
  })

  it('is not served from a Kafka, and no command runs on it there', async () => {
    const refusal = /it was embedded log \S+, and the settings lead to Kafka cluster/
    await expect(startServerProcess(roles, kafka)).rejects.toThrow(refusal)
    expect(await cli(['org', 'list'], kafka)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(refusal),
    })
    expect(await cli(['migrate'], kafka)).toMatchObject({ code: 1, stdout: expect.stringMatching(refusal) })
    // What was read of the one is more than what is on the other.
    const [adopt = []] = await documentedSteps('docs/operate/operations.md', 'Another log')
    expect(adopt).toEqual(['migrate', '--adopt-log'])
    expect(await cli(adopt, kafka)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/The log ends at offset 0 of .*, and it was read up to/),
    })
  }, 60_000)

  it('is served from its own log again', async () => {
    const server = await startServerProcess(roles, embedded)
    expect((await fetch(`${server.baseUrl}/readyz`)).status).toBe(200)
    await server.end('SIGTERM')
  }, 60_000)
})
