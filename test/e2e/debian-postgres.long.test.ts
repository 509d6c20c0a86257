import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect } from 'vitest'
import { allRoles } from '../../services/server/roles.ts'
import { cli, jsonLines } from '../support/cli.ts'
import { type Owner, operator } from '../support/cluster.ts'
import { type DebianPostgres, startDebianPostgres } from '../support/debian-postgres.ts'
import { createTestClient } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { needs } from '../support/needs.ts'
import { queryAt } from '../support/server-databases.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { createAuthority } from '../support/tls-certificates.ts'

const { describe, it } = needs('postgresql')

const observations = { version: 1, elapsed_ms: 5 } as const

describe("Debian's PostgreSQL, with a user of the name tidegate and servers that may make no tables", () => {
  let postgres: DebianPostgres
  let servers = new Map<string, ServerProcess>()
  let owner: Owner
  const settings = { TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'), KAFKA_BROKERS: '' }
  const as = (user: string, ca = postgres.ca) => ({
    ...settings,
    DATABASE_URL: `${urlOf(postgres.url, user)}?sslmode=verify-full&sslrootcert=${ca}`,
  })

  beforeAll(async () => {
    postgres = await startDebianPostgres()
    await queryAt(postgres.url, [
      `create role tidegate login password 'secret'`,
      `create role "serving-user" login password 'secret'`,
      `create role analyst login password 'secret'`,
      // As some installations have it: nothing is looked for in the schema public.
      `alter role "serving-user" set search_path = nowhere`,
      'create database tidegate owner tidegate',
    ])
  }, 60_000)

  afterAll(async () => {
    await Promise.all([...servers.values()].map((server) => server.end('SIGTERM')))
    await postgres?.stop()
  })

  it('tells a server that lacks tables what to do', async () => {
    await expect(
      startServerProcess(['serve', '--roles', 'api'], as('serving-user')),
    ).rejects.toThrow(/tidegate migrate --grant <this user>/)
  })

  it('makes tables by a command of its own, as often as one likes', async () => {
    for (let run = 0; run < 2; run++)
      expect(await cli(['migrate', '--grant', 'serving-user'], as('tidegate'))).toMatchObject({
        code: 0,
        stderr: '',
      })
  })

  it('starts each role as a process of its own', async () => {
    const started = allRoles.map(
      async (role) =>
        [role, await startServerProcess(['serve', '--roles', role], as('serving-user'))] as const,
    )
    servers = new Map(await Promise.all(started))
    owner = await operator(as('serving-user')).organization()
  }, 60_000)

  it('is connected to by TLS alone, and only where its authority is known', async () => {
    const plain = await queryAt(postgres.url, [
      `select application_name from pg_stat_ssl join pg_stat_activity using (pid)
       where usename = 'serving-user' and not ssl`,
    ])
    expect(plain).toEqual([])
    const other = `${postgres.ca}.other`
    await writeFile(other, createAuthority('Other').ca)
    const { code, stderr } = await cli(['org', 'list'], as('serving-user', other))
    expect([code, stderr]).toEqual([1, expect.stringMatching(/unable to verify|unable to get/)])
  })

  it.each([['serve', '--roles', 'api'], ['migrate']])(
    'is not connected to by sslmode=require without its authority, and the hint says how: %s',
    async (...args) => {
      const url = `${urlOf(postgres.url, 'tidegate')}?sslmode=require`
      const { code, stdout } = await cli(args, { ...settings, DATABASE_URL: url })
      expect(code).toBe(1)
      const line = stdout.split('\n').find((one) => one.includes('"fatal"')) ?? ''
      expect(JSON.parse(line)).toMatchObject({
        msg: expect.stringMatching(/certificate/),
        hint: expect.stringMatching(/sslmode=require.*sslrootcert.*DATABASE_URL/),
      })
    },
    30_000,
  )

  it('scores a session and shows it', async () => {
    await readSession(await openSession())
  })

  it('prints what was recorded to who may only read, without master keys', async () => {
    const url = urlOf(postgres.url, 'serving-user')
    const print = async (...args: string[]) => {
      const run = ['events', '--topic', 'tidegate.organizations.v1', ...args]
      const { code, stdout, stderr } = await cli(run, { DATABASE_URL: url, KAFKA_BROKERS: '' })
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      return jsonLines<{ position: { partition: number; offset: number } }>(stdout)
    }
    const all = await print()
    const [first] = all
    expect(all.length).toBeGreaterThanOrEqual(3)
    expect(await print('--limit', '2')).toEqual(all.slice(0, 2))
    expect(await print('--organization', owner.organizationId)).toEqual(all)
    expect(await print('--organization', `org_${'0'.repeat(26)}`)).toEqual([])
    expect(await print('--since', new Date(Date.now() + 60_000).toISOString())).toEqual([])
    const { partition, offset } = first?.position ?? {}
    const place = ['--partition', String(partition), '--offset', String(offset)]
    expect(await print(...place, '--limit', '1')).toEqual([first])
  })

  it('lets analysts read the flat rows, and says where a role or an organization is missing', async () => {
    const analysts = (...args: string[]) => cli(['migrate', ...args], as('tidegate'))
    expect(await analysts('--analysts', 'nobody-of-this-name')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('nobody-of-this-name'),
    })
    expect(await analysts('--analysts', 'analyst', '--organization', 'nowhere')).toMatchObject({
      code: 1,
    })
    const { organizationId } = owner
    expect(await analysts('--analysts', 'analyst', '--organization', organizationId)).toMatchObject(
      {
        code: 0,
        stdout: expect.stringContaining('read.session_facts'),
      },
    )
    expect(await readFacts()).toContainEqual({ organization_id: organizationId, ip_address: null })
  })

  const readFacts = () =>
    queryAt(urlOf(postgres.url, 'analyst'), [
      'select distinct organization_id, ip_address from read.session_facts',
    ])

  it('keeps views and rights that others have on the read models through a rebuild', async () => {
    await queryAt(urlOf(postgres.url, 'tidegate'), [
      'create view public.mine as select session_id, verdict from read.decisions',
      'grant usage on schema read, public to analyst',
      'grant select on read.decisions to analyst',
      'grant select on public.mine to analyst',
    ])
    const { code, stdout, stderr } = await cli(['rebuild', 'sessions'], as('tidegate'))
    expect({ code, stdout, stderr }).toMatchObject({ code: 0 })
    const sessionId = await openSession()
    await readSession(sessionId)
    for (const view of ['read.decisions', 'public.mine'])
      expect(
        await queryAt(urlOf(postgres.url, 'analyst'), [
          `select distinct session_id from ${view} where session_id = '${sessionId}'`,
        ]),
      ).toEqual([{ session_id: sessionId }])
    expect(await readFacts()).toContainEqual({
      organization_id: owner.organizationId,
      ip_address: null,
    })
  }, 60_000)

  async function openSession(): Promise<string> {
    const client = createTestClient({ baseUrl: servers.get('collect')?.baseUrl ?? '', owner })
    const { sessionId } = await client.open()
    await client.requestResult(observations)
    return sessionId
  }

  async function readSession(sessionId: string): Promise<void> {
    const headers = { authorization: `Bearer ${owner.secret.key}` }
    const address = `${servers.get('api')?.baseUrl}/v1/sessions/${sessionId}`
    await eventually(async () => expect((await fetch(address, { headers })).status).toBe(200))
  }
})

function urlOf(url: string, user: string): string {
  const changed = new URL(url)
  changed.username = user
  changed.pathname = '/tidegate'
  return changed.href
}
