import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { cli } from '../../../support/cli.ts'
import { followCli } from '../../../support/cli-lines.ts'
import { approveAsPerson } from '../../../support/gate-approve.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { startTidegate } from '../../../support/tidegate.ts'

const folder = temporaryFolder('signup')
const running: ReturnType<typeof followCli>[] = []
const tidegate = await startTidegate()
afterAll(async () => {
  for (const { end } of running) end()
  await Promise.all(running.map(({ result }) => result))
  await tidegate.stop()
}, 60_000)

const settings = () => ({ DATA_DIR: tidegate.dataDir })
const file = (name: string) => path.join(folder, name)
const variables = async (name: string) => parseEnv(await readFile(file(name), 'utf8'))

function signUp(serviceId: string, ...args: string[]) {
  return followCli(['signup', serviceId, '--json', ...args], settings())
}

async function approve(agent: ReturnType<typeof followCli>): Promise<number> {
  const { gate_session_id } = JSON.parse(await agent.line(/consent_required/))
  return approveAsPerson(tidegate, gate_session_id)
}

test('signs up for the built-in service and gets working keys of an organization', async () => {
  const agent = signUp('tidegate', '--account-name', 'Robin', '--env-file', file('built-in.env'))
  expect(await approve(agent)).toBe(200)
  expect((await agent.result).code).toBe(0)
  const approved = JSON.parse(agent.lines.at(-1) ?? '')
  expect(approved).toMatchObject({ event: 'approved', elsewhere: [], skipped: [], missing: [] })
  const values = await variables('built-in.env')
  expect(Object.keys(values).toSorted()).toEqual(approved.keys.toSorted())
  const [, secretKey] = Object.entries(values).find(([, value]) => value?.startsWith('sk_')) ?? []
  const response = await fetch(`${tidegate.baseUrl}/v1/sessions`, {
    headers: { authorization: `Bearer ${secretKey}` },
  })
  expect([response.status, await response.json()]).toEqual([
    200,
    expect.objectContaining({ data: [] }),
  ])

  const login = ['signup', 'tidegate', 'login', '--env-file', file('built-in.env')]
  expect((await cli(login, settings())).stderr).toMatch(/\(tidegate\) has no dashboard login/)
}, 60_000)

test('--stdout prints only the credentials to standard output', async () => {
  const agent = followCli(['signup', 'tidegate', '--account-name', 'Robin', '--stdout'], settings())
  const [id = ''] = /gate_\w+/.exec(await agent.errorLine(/gate_/)) ?? []
  expect(await approveAsPerson(tidegate, id)).toBe(200)
  const { code, stdout } = await agent.result
  expect(code).toBe(0)
  const values = parseEnv(stdout)
  expect(values.TIDEGATE_SECRET_KEY).toMatch(/^sk_/)
  expect(
    stdout.split('\n').filter((line) => !/^(?:# Signed up for tidegate|\w+=|$)/.test(line)),
  ).toEqual([])
}, 60_000)

async function integrator(...args: string[]) {
  const started = followCli(['gate', 'dev-integrator', ...args], settings())
  running.push(started)
  await started.line(/is listening on/)
  return started
}

describe('two sample services', () => {
  test('keep their own approvals while others fail to start', async () => {
    const service = await integrator('--service-id', '1demo')
    await integrator('--service-id', 'demo-two')
    const refusals = await Promise.all(
      ['1demo', 'tidegate', 'registry'].map((id) =>
        cli(['gate', 'dev-integrator', '--service-id', id], settings()),
      ),
    )
    expect(refusals).toMatchObject([
      { code: 1, stderr: expect.stringMatching(/1demo is already running on http.*--service-id/) },
      { code: 1, stderr: expect.stringMatching(/\S/) },
      { code: 1, stderr: expect.stringMatching(/^--service-id is reserved: none of/) },
    ])
    const agent = signUp('1demo', '--env-file', file('one.env'))
    expect(await approve(agent)).toBe(200)
    await service.line(/created account/)
    expect((await agent.result).code).toBe(0)
    expect(Object.keys(await variables('one.env')).toSorted()).toEqual([
      '_1DEMO_ACCOUNT_ID',
      '_1DEMO_API_KEY',
      '_1DEMO_GATE_AGENT_TOKEN',
    ])
  }, 60_000)

  test('log in with an agent token under either of its names', async () => {
    const login = (name: string) =>
      cli(['signup', '1demo', 'login', '--env-file', file(name)], settings())
    const token = (await variables('one.env'))._1DEMO_GATE_AGENT_TOKEN
    await writeFile(file('other.env'), `1DEMO_GATE_AGENT_TOKEN=${token}\n`)
    for (const { code, stdout } of await Promise.all(['one.env', 'other.env'].map(login))) {
      expect(code).toBe(0)
      expect(stdout).toMatch(
        /^Logging in to Demo Service \(1demo\) with _?1DEMO_GATE_AGENT_TOKEN from/,
      )
      expect(stdout).not.toContain(token)
    }
    expect((await login('none.env')).stderr).toMatch(
      /^_1DEMO_GATE_AGENT_TOKEN is not in .*: npm run -s tidegate -- signup 1demo --env-file \S+none.env$/m,
    )
  })
})

test('a service that fails after the approval is waited for after Ctrl-C, until the timeout', async () => {
  await integrator('--service-id', 'demo-broken', '--fail', '500')
  const agent = signUp('demo-broken', '--env-file', file('broken.env'), '--timeout', '15')
  const approving = approve(agent)
  await agent.line(/in_progress/)
  agent.end()
  expect((await agent.result).code).toBe(1)
  expect(agent.lines.slice(1).map((line) => JSON.parse(line))).toMatchObject([
    { event: 'in_progress' },
    { event: 'warning', message: expect.stringMatching(/can no longer be canceled/) },
    {
      event: 'failed',
      reason: 'timed_out',
      error: { message: expect.stringMatching(/may still create the account/) },
    },
  ])
  expect(await approving).toBe(409)
}, 60_000)

describe('an error', () => {
  const nowhere = { TIDEGATE_URL: 'http://127.0.0.1:9', DATA_DIR: '/nowhere' }

  test.each([
    [
      'an invalid timeout',
      ['signup', 'acme', '--timeout', '0'],
      /whole number of seconds from 1 to 99999/,
    ],
    ['an unreachable server', ['signup', 'acme'], /is not responding/],
  ])(
    'for %s is one line of JSON, or text',
    async (_, args, message) => {
      const [text, json] = await Promise.all([
        cli(args, nowhere),
        cli([...args, '--json'], nowhere),
      ])
      expect(text).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(message) })
      expect(json).toMatchObject({ code: 1, stderr: '' })
      expect(json.stdout.trim().split('\n')).toHaveLength(1)
      const { event, error } = JSON.parse(json.stdout)
      const isAway = /responding/.test(message.source)
      expect([event, error]).toEqual([
        'failed',
        expect.objectContaining({ message: expect.stringMatching(message), retryable: isAway }),
      ])
    },
    30_000,
  )

  test('for an invalid account name is printed once and names the option', async () => {
    const { stderr } = await cli(
      ['signup', 'tidegate', '--account-name', 'x'.repeat(101), '--env-file', file('n.env')],
      settings(),
    )
    expect(stderr).toMatch(/^--account-name must .*\n$/)
  })

  test('for a page URL says what --base-url must be', async () => {
    const { stderr } = await cli(
      ['signup', 'list', '--base-url', `${tidegate.baseUrl}/docs`],
      settings(),
    )
    expect(stderr).toMatch(/docs has no list of services: --base-url must be the URL of the server/)
  })

  test('says why a sample service cannot start', async () => {
    const { stderr } = await cli(['gate', 'dev-integrator'], nowhere)
    expect(stderr).toMatch(
      /DATA_DIR \(\/nowhere\) has no credentials.json: start npm run -s tidegate -- dev first/,
    )
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const address = taken.address()
    const port = address !== null && typeof address === 'object' ? String(address.port) : ''
    const busy = await cli(['gate', 'dev-integrator', '--port', port], settings())
    taken.close()
    expect(busy.stderr).toMatch(`Port ${port} is in use: choose another with --port`)
  })
})

test('signup list --json prints one line of JSON', async () => {
  const { stdout } = await cli(['signup', 'list', '--json'], settings())
  expect(stdout.trim().split('\n')).toHaveLength(1)
  const ids = JSON.parse(stdout).data.map(({ id }: { id: string }) => id)
  expect(ids).toEqual(expect.arrayContaining(['tidegate', '1demo', 'demo-two']))
})
