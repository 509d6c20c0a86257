import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
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

async function integrator(...args: string[]) {
  const started = followCli(['gate', 'dev-integrator', ...args], settings())
  running.push(started)
  await started.line(/listens on/)
  return started
}

function signUp(serviceId: string, ...args: string[]) {
  return followCli(['signup', serviceId, '--json', ...args], settings())
}

async function approve(agent: ReturnType<typeof followCli>): Promise<number> {
  const { gate_session_id } = JSON.parse(await agent.line(/consent_required/))
  return approveAsPerson(tidegate, gate_session_id)
}

describe('two sample services', () => {
  test("do not take each other's approvals, also when the start of another is refused", async () => {
    const one = await integrator('--service-id', '1demo')
    await integrator('--service-id', 'demo-two')
    const refusals = await Promise.all([
      cli(['gate', 'dev-integrator', '--service-id', '1demo'], settings()),
      cli(['gate', 'dev-integrator', '--service-id', 'tidegate'], settings()),
      cli(['gate', 'dev-integrator', '--service-id', 'registry'], settings()),
    ])
    expect(refusals.map(({ code }) => code)).toEqual([1, 1, 1])
    expect(refusals[0]?.stderr).toMatch(/1demo runs already, on http.*--service-id/)
    expect(refusals[1]?.stderr).not.toBe('')
    expect(refusals[2]?.stderr).toMatch(/^--service-id: reserved; expected none of/)

    const agent = signUp('1demo', '--env-file', file('one.env'))
    expect(await approve(agent)).toBe(200)
    await one.line(/a new account/)
    expect((await agent.result).code).toBe(0)
    expect(Object.keys(await variables('one.env')).toSorted()).toEqual([
      '_1DEMO_ACCOUNT_ID',
      '_1DEMO_API_KEY',
      '_1DEMO_GATE_AGENT_TOKEN',
    ])
  }, 60_000)

  test('log in with an agent token under either of its names', async () => {
    const token = (await variables('one.env'))._1DEMO_GATE_AGENT_TOKEN
    await writeFile(file('other.env'), `1DEMO_GATE_AGENT_TOKEN=${token}\n`)
    const logins = ['one.env', 'other.env'].map((name) =>
      cli(['signup', '1demo', 'login', '--env-file', file(name)], settings()),
    )
    for (const { code, stdout } of await Promise.all(logins)) {
      expect(code).toBe(0)
      expect(stdout).toMatch(
        /^To log in to Demo Service \(1demo\), to the account of _?1DEMO_GATE_AGENT_TOKEN in/,
      )
      expect(stdout).not.toContain(token)
    }
    const { stderr } = await cli(
      ['signup', '1demo', 'login', '--env-file', file('none.env')],
      settings(),
    )
    expect(stderr).toMatch(
      /no _1DEMO_GATE_AGENT_TOKEN in .*: npm run -s tidegate -- signup 1demo --env-file \S+none.env$/m,
    )
  })
})

describe('a service that fails after a person has approved', () => {
  beforeAll(
    async () => void (await integrator('--service-id', 'demo-broken', '--fail', '500')),
    30_000,
  )

  test('is told, and waited for after Ctrl-C until the time is up', async () => {
    const agent = signUp('demo-broken', '--env-file', file('broken.env'), '--timeout', '15')
    const approving = approve(agent)
    await agent.line(/in_progress/)
    agent.end()
    expect((await agent.result).code).toBe(1)
    expect(agent.lines.slice(1).map((line) => JSON.parse(line))).toEqual([
      { event: 'in_progress' },
      { event: 'warning', message: expect.stringMatching(/cannot be cancelled/) },
      {
        event: 'failed',
        reason: 'timed_out',
        error: expect.objectContaining({
          message: expect.stringMatching(/account may still be made/),
        }),
      },
    ])
    expect(await approving).toBe(409)
  }, 60_000)
})

test('a list is one line of JSON', async () => {
  const { stdout } = await cli(['signup', 'list', '--json'], settings())
  expect(stdout.trim().split('\n')).toHaveLength(1)
  const ids = JSON.parse(stdout).data.map(({ id }: { id: string }) => id)
  expect(ids).toEqual(expect.arrayContaining(['tidegate', '1demo', 'demo-two']))
})
