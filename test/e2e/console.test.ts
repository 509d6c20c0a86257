import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../infra/local/free-port.ts'
import { createInstallation, type Installation } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'

let installation: Installation
beforeAll(async () => {
  installation = await createInstallation()
})
afterAll(() => installation.stop())

const statusOf = async (url: string) => (await fetch(url)).status

const serve = (env: Record<string, string>) => installation.serve('projections,api', { env })

async function cli(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await installation.cli(args)
  if (code !== 0) throw new Error(stderr)
  return stdout.trim()
}

describe('the console of a server', () => {
  it('is on a port of its own, where a link of the command logs in', async () => {
    const port = await freePort()
    const inside = `http://127.0.0.1:${port}`
    const { baseUrl } = await serve({ CONSOLE_PORT: String(port) })
    for (const path of ['/console', '/console/api/session', '/console/api/v1/sessions'])
      expect([path, await statusOf(baseUrl + path)]).toEqual([path, 404])
    expect([await statusOf(`${inside}/console`), await statusOf(`${inside}/v1/sessions`)]).toEqual([
      200, 404,
    ])
    await cli('org', 'create', '--name', 'Acme', '--slug', 'acme')
    const asked = ['--role', 'viewer', '--environment', 'test', '--name', 'Ann']
    const link = await cli('console', 'login', 'acme', ...asked, '--url', inside)
    expect(link).toMatch(new RegExp(`^${inside}/console#code=conlog_[0-9a-z]{40}$`))
    const login = await fetch(`${inside}/console/api/login`, {
      method: 'POST',
      headers: { origin: inside, 'content-type': 'application/json' },
      body: JSON.stringify({ code: link.split('=')[1] }),
    })
    expect(login.status).toBe(200)
    const [cookie = ''] = login.headers.getSetCookie().map((one) => one.split(';')[0] ?? '')
    const read = (environment: string) =>
      fetch(`${inside}/console/api/v1/sessions`, {
        headers: { cookie, 'tidegate-environment': environment },
      })
    expect([(await read('test')).status, (await read('live')).status]).toEqual([200, 403])
    await cli('org', 'suspend', 'acme')
    expect((await read('test')).status).toBe(401)
    const sessions = 'select ended_at is not null as ended from tidegate.console_sessions'
    await eventually(async () =>
      expect((await installation.pool.query(sessions)).rows).toEqual([{ ended: true }]),
    )
    await cli('org', 'reactivate', 'acme')
    expect((await read('test')).status).toBe(401)
  }, 120_000)

  it('is not there with CONSOLE=off', async () => {
    const port = await freePort()
    const { baseUrl } = await serve({ CONSOLE: 'off', CONSOLE_PORT: String(port) })
    for (const path of ['/console', '/console/live/sessions', '/console/api/session'])
      expect([path, await statusOf(baseUrl + path)]).toEqual([path, 404])
    await expect(fetch(`http://127.0.0.1:${port}/console`)).rejects.toThrow()
  }, 120_000)
})
