import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { connectionsOf } from '../../services/server/connections.ts'
import { allRoles } from '../../services/server/roles.ts'
import { type Owner, operator } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'

const atOnce = 60

interface Watched {
  proxy: TcpProxy
  server: ServerProcess
}

/** Sessions side by side, and reads of them. */
async function work(
  { collect, api }: { collect: Watched; api: Watched },
  owner: Owner,
): Promise<void> {
  const headers = { authorization: `Bearer ${owner.secret.key}` }
  const visit = async () => {
    const client = createCollectClient({
      endpoint: collect.server.baseUrl,
      publishableKey: owner.publishable.key,
      sdk: { name: 'test', version: '1', platform: 'web' },
      page: { url: 'https://shop.example/' },
      fetch,
    })
    const { sessionId } = await client.open()
    await client.requestResult({ version: 1, elapsed_ms: 5 })
    const answer = await fetch(`${api.server.baseUrl}/v1/sessions/${sessionId}`, { headers })
    return answer.status
  }
  const statuses = await Promise.all(Array.from({ length: atOnce }, visit))
  expect(new Set(statuses)).toEqual(new Set([200]))
}

describe('a process keeps to its connections', () => {
  let database: TestDatabase
  let owner: Owner
  let settings: Record<string, string>
  const started: Watched[] = []
  beforeAll(async () => {
    database = await createTestDatabase()
    const masterKeys = randomBytes(32).toString('base64')
    settings = { DATABASE_URL: database.url, TIDEGATE_MASTER_KEYS: masterKeys, KAFKA_BROKERS: '' }
  })
  afterAll(async () => {
    await Promise.all(started.map(({ server }) => server.end('SIGTERM')))
    await Promise.all(started.map(({ proxy }) => proxy.close()))
    await database?.drop()
  })

  async function start(roles: string, env: Record<string, string> = {}): Promise<Watched> {
    const proxy = await startTcpProxy(database.url)
    const server = await startServerProcess(['serve', '--roles', roles], {
      ...settings,
      DATABASE_URL: proxy.url,
      ...env,
    })
    const watched = { proxy, server }
    started.push(watched)
    return watched
  }

  it('with every role in one, it has as many as it was given, and works', async () => {
    const alone = await start(allRoles.join(), { DATABASE_MAX_CONNECTIONS: '26' })
    owner = await operator(settings).organization()
    await work({ collect: alone, api: alone }, owner)
    expect(alone.proxy.connections().most).toBeLessThanOrEqual(26)
    expect(await alone.server.end('SIGTERM')).toBe(0)
  }, 120_000)

  it('with a role each, it has as many as its role needs, and few when nothing happens', async () => {
    const watched = new Map(
      await Promise.all(allRoles.map(async (role) => [role, await start(role)] as const)),
    )
    const [collect, api] = [watched.get('collect'), watched.get('api')]
    if (!collect || !api) throw new Error('a role did not start')
    await work({ collect, api }, owner)
    for (const [role, { proxy }] of watched) {
      const { all } = connectionsOf({ roles: [role], isLogEmbedded: true })
      expect({ role, tooMany: Math.max(0, proxy.connections().most - all) }).toEqual({
        role,
        tooMany: 0,
      })
    }
    // Pools close what was idle for ten seconds.
    const idle = () =>
      [...watched].filter(([, { proxy }]) => proxy.connections().now > 6).map(([role]) => role)
    await eventually(() => expect(idle()).toEqual([]), { timeoutMs: 60_000, intervalMs: 200 })
  }, 180_000)
})
