import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cli } from '../../../support/cli.ts'
import { followCli } from '../../../support/cli-lines.ts'
import { approveAsPerson } from '../../../support/gate-approve.ts'
import { type RunningTidegate, startTidegate } from '../../../support/tidegate.ts'

let folder = ''
let tidegate: RunningTidegate
const running: ReturnType<typeof followCli>[] = []

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tidegate-signup-'))
  tidegate = await startTidegate()
}, 60_000)
afterAll(async () => {
  for (const { end } of running) end()
  await Promise.all(running.map(({ result }) => result))
  await tidegate?.stop()
  await rm(folder, { recursive: true, force: true })
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

test('signs up for the built-in service: keys of an organization that can be used at once', async () => {
  const agent = signUp('tidegate', '--account-name', 'Robin', '--env-file', file('built-in.env'))
  expect(await approve(agent)).toBe(200)
  expect((await agent.result).code).toBe(0)
  const approved = JSON.parse(agent.lines.at(-1) ?? '')
  expect(approved).toMatchObject({ event: 'approved', elsewhere: [], skipped: [], missing: [] })
  const values = await variables('built-in.env')
  expect(Object.keys(values).toSorted()).toEqual(approved.keys.toSorted())
  const [, secretKey] = Object.entries(values).find(([, value]) => value?.startsWith('sk_')) ?? []
  const answer = await fetch(`${tidegate.baseUrl}/v1/sessions`, {
    headers: { authorization: `Bearer ${secretKey}` },
  })
  expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ data: [] })])

  const login = ['signup', 'tidegate', 'login', '--env-file', file('built-in.env')]
  expect((await cli(login, settings())).stderr).toMatch(/\(tidegate\) has no dashboard login/)
}, 60_000)

test('prints what was given out with --stdout, and nothing else there', async () => {
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
  const both = await cli(['signup', 'tidegate', '--stdout', '--json'], settings())
  expect(both.stdout).toMatch(/'--stdout' cannot be used with option '--json'/)
}, 60_000)

describe('what is refused', () => {
  const nowhere = { TIDEGATE_URL: 'http://127.0.0.1:9', DATA_DIR: '/nowhere' }

  test.each([
    [
      'an id that none can be',
      ['signup', 'NO!'],
      /'NO!' cannot be the id of a service. An id has 3/,
    ],
    ['no time', ['signup', 'acme', '--timeout', '0'], /whole number of seconds, 1 to 99999/],
    [
      'a time for a login',
      ['signup', 'acme', 'login', '--timeout', '5'],
      /--timeout <seconds>' is not one of login/,
    ],
    ['a server that is not there', ['signup', 'acme'], /does not answer/],
  ])(
    '%s is one line of JSON, or text',
    async (_, args, message) => {
      const [text, json] = await Promise.all([
        cli(args, nowhere),
        cli([...args, '--json'], nowhere),
      ])
      expect(text).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(message) })
      expect(json).toMatchObject({ code: 1, stderr: '' })
      expect(json.stdout.trim().split('\n')).toHaveLength(1)
      const { event, error } = JSON.parse(json.stdout)
      const isAway = /answer/.test(message.source)
      expect([event, error]).toEqual([
        'failed',
        expect.objectContaining({ message: expect.stringMatching(message), retryable: isAway }),
      ])
    },
    30_000,
  )

  test('a name that no account can have, once and by its option', async () => {
    const { stderr } = await cli(
      ['signup', 'tidegate', '--account-name', 'x'.repeat(101), '--env-file', file('n.env')],
      settings(),
    )
    expect(stderr).toMatch(/^--account-name: .*\n$/)
  })

  test('the address of a page', async () => {
    const { stderr } = await cli(
      ['signup', 'list', '--base-url', `${tidegate.baseUrl}/docs`],
      settings(),
    )
    expect(stderr).toMatch(/docs has no list of services: give the address of the server/)
  })

  test('to verify the built-in service, which is verified', async () => {
    const { stderr } = await cli(['gate', 'verify', 'tidegate'], settings())
    expect(stderr).toBe('tidegate is built in, and always verified.\n')
  })

  test('a sample service without a running server, or on a port that is in use', async () => {
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
    expect(busy.stderr).toMatch(`Port ${port} is in use: name another with --port`)
  })
})

test('a list is one line of JSON', async () => {
  const { stdout } = await cli(['signup', 'list', '--json'], settings())
  expect(stdout.trim().split('\n')).toHaveLength(1)
  const ids = JSON.parse(stdout).data.map(({ id }: { id: string }) => id)
  expect(ids).toContain('tidegate')
})
