import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cli } from '../support/cli.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'

describe('a server whose port is taken', () => {
  const taken = createServer()
  let database: TestDatabase
  let port = ''
  beforeAll(async () => {
    database = await createTestDatabase()
    await once(taken.listen(0, '127.0.0.1'), 'listening')
    const address = taken.address()
    port = typeof address === 'object' ? String(address?.port) : ''
  })
  afterAll(async () => {
    taken.close()
    await database.drop()
  })

  /** Returns the message of the last line that a failing start logs. */
  async function refusal(settings: Record<string, string>): Promise<string> {
    const keys = randomBytes(32).toString('base64')
    const env = {
      DATABASE_URL: database.url,
      KAFKA_BROKERS: '',
      TIDEGATE_MASTER_KEYS: keys,
      PORT: port,
    }
    const { code, stdout } = await cli(['serve', '--roles', 'api'], { ...env, ...settings })
    expect(code).toBe(1)
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '').msg
  }

  it('says so where all else is right', async () => {
    expect(await refusal({})).toContain(`Port ${port} of 127.0.0.1 is in use`)
  })

  it.each([
    ['settings', { TIDEGATE_MASTER_KEYS: 'short' }, /TIDEGATE_MASTER_KEYS/],
    ['a list of addresses', { REPUTATION_LISTS: 'spam=/nowhere/drop.txt' }, /REPUTATION_LISTS/],
  ])('reports wrong %s first', async (_, settings, message) => {
    expect(await refusal(settings)).toMatch(message)
  })

  it('reports a wrong database first', async () => {
    const url = new URL(database.url)
    url.pathname = '/nowhere'
    expect(await refusal({ DATABASE_URL: url.href })).toContain('database "nowhere" does not exist')
  })
})
