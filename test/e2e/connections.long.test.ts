import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connectionsOf } from '../../services/server/connections.ts'
import { allRoles } from '../../services/server/roles.ts'
import { createInstallation, type Installation, type Owner } from '../support/cluster.ts'
import { createTestClient } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import type { ServerProcess } from '../support/server-process.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'

const atOnce = 60

interface Watched {
  proxy: TcpProxy
  server: ServerProcess
}

describe('a process keeps to its connections', () => {
  const proxies: TcpProxy[] = []
  let installation: Installation
  let owner: Owner

  beforeAll(async () => {
    installation = await createInstallation()
  })
  afterAll(async () => {
    await installation?.stop()
    await Promise.all(proxies.map((proxy) => proxy.close()))
  })

  async function start(roles: string, env: Record<string, string> = {}): Promise<Watched> {
    const proxy = await startTcpProxy(installation.settings.DATABASE_URL ?? '')
    proxies.push(proxy)
    return {
      proxy,
      server: await installation.serve(roles, { env: { DATABASE_URL: proxy.url, ...env } }),
    }
  }

  /** Sessions side by side, and reads of them. */
  async function work(collect: Watched, api: Watched): Promise<void> {
    const headers = { authorization: `Bearer ${owner.secret.key}` }
    const visit = async () => {
      const client = createTestClient({ baseUrl: collect.server.baseUrl, owner })
      const { sessionId } = await client.open()
      await client.requestResult({ version: 1, elapsed_ms: 5 })
      return (await fetch(`${api.server.baseUrl}/v1/sessions/${sessionId}`, { headers })).status
    }
    const statuses = await Promise.all(Array.from({ length: atOnce }, visit))
    expect(new Set(statuses)).toEqual(new Set([200]))
  }

  it('with every role in one, it has as many as it was given, and works', async () => {
    const alone = await start(allRoles.join(), { DATABASE_MAX_CONNECTIONS: '26' })
    owner = await installation.organization()
    await work(alone, alone)
    expect(alone.proxy.connections().most).toBeLessThanOrEqual(26)
    expect(await alone.server.end('SIGTERM')).toBe(0)
  }, 120_000)

  it('with a role each, it has as many as its role needs, and few when nothing happens', async () => {
    const started = allRoles.map(async (role) => [role, await start(role)] as const)
    const watched = new Map(await Promise.all(started))
    const [collect, api] = [watched.get('collect'), watched.get('api')]
    if (!collect || !api) throw new Error('a role did not start')
    await work(collect, api)
    for (const [role, { proxy }] of watched) {
      const { all } = connectionsOf({ roles: [role], isLogEmbedded: true })
      expect(proxy.connections().most, role).toBeLessThanOrEqual(all)
    }
    // Pools close what was idle for ten seconds.
    const idle = () =>
      [...watched].filter(([, { proxy }]) => proxy.connections().now > 6).map(([role]) => role)
    await eventually(() => expect(idle()).toEqual([]), { timeoutMs: 60_000, intervalMs: 200 })
  }, 180_000)
})
