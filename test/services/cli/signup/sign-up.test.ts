import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ApiError } from '../../../../infra/errors/errors.ts'
import { randomId } from '../../../../infra/ids.ts'
import { type DeliveryRequest, sealEnvelope } from '../../../../infra/wire/delivery-envelope.ts'
import type {
  GateApi,
  PolledSession,
  SignupRequest,
} from '../../../../services/cli/signup/gate-api.ts'
import type { Approval, SignupReport } from '../../../../services/cli/signup/report.ts'
import { defaultEnvFile } from '../../../../services/cli/signup/settings.ts'
import { signUp } from '../../../../services/cli/signup/sign-up.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tidegate-signup-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const env = (name = '.env.acme') => path.join(folder, name)
const modeOf = async (file: string) => (await stat(file)).mode & 0o777

const never = new AbortController().signal
const neverStopped = { stop: never, timeUp: never }

interface World {
  serviceId?: string
  /** Variables that the service delivers. */
  integrator?: Record<string, string>
  /** Variables that Gate delivers in addition to its ack token. */
  gate?: Record<string, string>
  announced?: string[]
  /** Verified prefix of the service's own variables. */
  prefix?: string
  /** Variables that the person accepts. Default: all announced ones. */
  accepted?: string[]
  /** Null to print the variables instead. */
  file?: string | null
  onPoll?: () => Promise<void>
  acknowledge?: () => Promise<void>
  /** Codes that a person types; only the last one is correct. */
  typed?: string[]
}

/** Runs a signup that the server approves at the first poll. */
async function run(world: World = {}) {
  const calls: string[] = []
  const warnings: string[] = []
  const printed: string[] = []
  let approval: Approval | undefined
  const typed = [...(world.typed ?? [])]
  let time = 0
  let delivery: DeliveryRequest | undefined
  const seal = (outputs: Record<string, string>, more = {}) => {
    if (!delivery) throw new Error('nothing was created')
    return sealEnvelope({ version: 1, outputs, ...more }, { delivery, random: randomBytes })
  }
  const serviceId = world.serviceId ?? 'acme'
  const keys = world.announced ?? ['ACME_KEY']
  const api: GateApi = {
    baseUrl: 'http://server',
    services: async () => [],
    service: async (id) => {
      if (id !== serviceId) throw new ApiError('request.not_found')
      return {
        id,
        name: 'Acme',
        description: '',
        website: 'https://acme.example',
        docs_url: 'https://a.example',
        dashboard_login_url: 'https://acme.example/auth/gate',
        env_vars: keys.map((key) => ({ name: key, key, secret: true })),
        sdks: [],
        branding: { verified: false },
        ...(world.prefix !== undefined && { env_prefix: world.prefix }),
      }
    },
    async createSession(request: SignupRequest) {
      calls.push('create')
      delivery = request.delivery
      const id = randomId('gate', randomBytes)
      const expires_at = new Date(15 * 60 * 1000).toISOString()
      const shown = { consent_url: 'http://a/', confirmation_code: 'K4-7M9', expires_at }
      return { id, poll_token: 'token', ...shown }
    },
    async poll(): Promise<PolledSession> {
      await world.onPoll?.()
      if (typed.length > 0) return { status: 'pending', claim: 'waiting' }
      const delivery_bundle = {
        integrator: seal(world.integrator ?? { ACME_KEY: 'value' }),
        gate: seal(world.gate ?? {}, { ack_token: 'gtack' }),
      }
      const accepted_env_vars = world.accepted ?? keys
      const account = { gate_account_id: 'gacct', account_name: 'Ada' }
      return { status: 'approved', ...account, delivery_bundle, accepted_env_vars }
    },
    cancel: async () => void calls.push('cancel'),
    async claim(_session, code) {
      calls.push(`claim ${code}`)
      if (typed.length > 0) throw new ApiError('gate.claim_code_invalid')
    },
    async acknowledge() {
      await world.acknowledge?.()
      calls.push('acknowledge')
    },
    createLogin: () => Promise.reject(new Error('no login')),
  }
  const report: SignupReport = {
    consentRequired: async () => {},
    waiting: () => {},
    claimRequired: (file) => void calls.push(`asked for in ${file}`),
    warning: (message) => void warnings.push(message),
    approved: (reported) => {
      approval = reported
    },
  }
  const next = async () => typed.shift()
  const codes = { open: async () => 'code.txt', next, close: async () => {} }
  const deps = {
    api,
    report,
    codes,
    now: () => time,
    ...neverStopped,
    print: async (text: string) => void printed.push(text),
    async sleep(ms: number) {
      time += ms
    },
  }
  const envFile = world.file === null ? undefined : (world.file ?? env())
  const request = { serviceId, accountName: 'Ada', metadata: {}, envFile }
  const failure = await signUp(request, deps).then(
    () => undefined,
    (error: Error) => error.message,
  )
  return { failure, calls, warnings, approval, printed }
}

test('typed codes are sent, and a wrong one prints the message of the server', async () => {
  const { failure, calls, warnings } = await run({ typed: ['111111', '222222', '333 333'] })
  expect(failure).toBeUndefined()
  const claims = ['claim 111111', 'claim 222222', 'claim 333 333']
  expect(calls).toEqual(['create', 'asked for in code.txt', ...claims, 'acknowledge'])
  const wrong = 'The code does not match the one on the consent page.'
  expect(warnings.slice(0, 2)).toEqual([wrong, wrong])
})

describe('the delivery is written', () => {
  test('to a new file that only its owner can read, and then acknowledged', async () => {
    const written: string[] = []
    const acknowledge = async () => void written.push(await readFile(env(), 'utf8'))
    const gate = { ACME_GATE_AGENT_TOKEN: 'agt_1' }
    const { failure, approval } = await run({ gate, acknowledge })
    expect(failure).toBeUndefined()
    expect(parseEnv(written[0] ?? '')).toEqual({ ACME_KEY: 'value', ...gate })
    expect(await modeOf(env())).toBe(0o600)
    const stored = [{ file: env(), names: ['ACME_KEY', 'ACME_GATE_AGENT_TOKEN'] }]
    expect(approval).toMatchObject({ acknowledged: true, skipped: [], stored })
    expect(await readdir(folder)).toEqual(['.env.acme'])
  })

  test('to a file with another name if the path was taken in the meantime', async () => {
    const onPoll = () => writeFile(env(), 'ACME_KEY=mine\n', { mode: 0o644 })
    const { failure, approval } = await run({ onPoll })
    expect(failure).toBeUndefined()
    expect(approval?.stored).toEqual([{ file: env('.env.acme.2'), names: ['ACME_KEY'] }])
    expect(await readFile(env(), 'utf8')).toBe('ACME_KEY=mine\n')
    expect(parseEnv(await readFile(env('.env.acme.2'), 'utf8'))).toEqual({ ACME_KEY: 'value' })
    expect(await modeOf(env('.env.acme.2'))).toBe(0o600)
  })

  test('next to the env file if a variable is unannounced or cannot be quoted', async () => {
    const raw = `it's "$(id)"\r\n`
    const site = { SITE_URL: 'http://evil.example' }
    const { approval } = await run({ integrator: { ACME_KEY: raw, ...site } })
    expect(approval?.stored).toEqual([
      { file: env(), names: [] },
      { file: env('.env.acme.others'), names: ['SITE_URL'], reason: 'unannounced' },
      { file: env('.env.acme.others.ACME_KEY'), names: ['ACME_KEY'], reason: 'unquotable' },
    ])
    expect(await readFile(env('.env.acme.others.ACME_KEY'), 'utf8')).toBe(raw)
    expect(parseEnv(await readFile(env('.env.acme.others'), 'utf8'))).toEqual(site)
    expect(await readFile(env(), 'utf8')).toMatch(
      /^# Signed up for acme .*\n# ACME_KEY is in \.env\.acme\.others\.ACME_KEY\n$/,
    )
  })

  test('to standard output if requested, with the other variables as comments', async () => {
    const integrator = { ACME_KEY: 'a b', ACME_PEM: 'A\nB=1', SITE_URL: 'http://evil.example' }
    const world = { integrator, announced: ['ACME_KEY', 'ACME_PEM'], file: null }
    const { printed, approval, calls } = await run(world)
    expect(parseEnv(printed.join(''))).toEqual({ ACME_KEY: 'a b' })
    expect(printed.join('').split('\n').slice(1)).toEqual([
      '# unannounced: SITE_URL="http://evil.example"',
      String.raw`# unquotable: ACME_PEM="A\nB=1"`,
      "ACME_KEY='a b'",
      '',
    ])
    expect([approval?.stored, calls.at(-1)]).toEqual([[], 'acknowledge'])
    expect(await readdir(folder)).toEqual([])
  })
})

describe('variables that the person accepts', () => {
  const integrator = {
    ACME_KEY: 'key',
    DATABASE_URL: 'theirs',
    ACME_PEM: '-----BEGIN\nA=1\n-----END',
  }
  const announced = Object.keys(integrator)
  const values = async (name = '.env.acme') =>
    parseEnv(await readFile(env(name), 'utf8').catch(() => ''))

  test('go to the env file, and the others to a separate file', async () => {
    const gate = { ACME_GATE_AGENT_TOKEN: 'agt_1' }
    const { approval } = await run({ integrator, announced, accepted: ['ACME_KEY'], gate })
    expect(await values()).toEqual({ ACME_KEY: 'key', ACME_GATE_AGENT_TOKEN: 'agt_1' })
    expect(await values('.env.acme.others')).toEqual({ DATABASE_URL: 'theirs' })
    expect(await modeOf(env('.env.acme.others'))).toBe(0o600)
    expect(await readFile(env('.env.acme.others.ACME_PEM'), 'utf8')).toBe(integrator.ACME_PEM)
    expect(approval?.stored.slice(1)).toEqual([
      { file: env('.env.acme.others'), names: ['DATABASE_URL'], reason: 'not_accepted' },
      { file: env('.env.acme.others.ACME_PEM'), names: ['ACME_PEM'], reason: 'unquotable' },
    ])
  })

  test('are none if the server lists none', async () => {
    await run({ integrator, announced, accepted: [] })
    expect(await values()).toEqual({})
    expect(await values('.env.acme.others')).toEqual({ ACME_KEY: 'key', DATABASE_URL: 'theirs' })
  })

  test('need not include names with the verified prefix', async () => {
    await run({ integrator, announced, accepted: [], prefix: 'ACME_' })
    expect(await values()).toEqual({ ACME_KEY: 'key' })
    expect(await values('.env.acme.others')).toEqual({ DATABASE_URL: 'theirs' })
    expect(await readFile(env(), 'utf8')).toContain('# ACME_PEM is in .env.acme.others.ACME_PEM\n')
  })

  test('cannot change how programs run, without the verified prefix', async () => {
    const steering = { ACME_BASE_URL: 'https://acme.example', ACME_KEY: 'key' }
    const names = Object.keys(steering)
    const world = { integrator: steering, announced: names, accepted: names }
    const { approval } = await run(world)
    expect(approval?.skipped).toEqual([{ name: 'ACME_BASE_URL', reason: 'steers_programs' }])
    expect(await values()).toEqual({ ACME_KEY: 'key' })
    await run({ ...world, prefix: 'ACME_', file: env('verified') })
    expect(await values('verified')).toEqual(steering)
  })

  test('never make a file that other programs load automatically', async () => {
    await run({ announced: [], integrator: { local: 'A=1\nB=2', X: '1' } })
    const files = ['.env.acme', '.env.acme.others', '.env.acme.others.local']
    expect((await readdir(folder)).toSorted()).toEqual(files)
    for (const id of ['local', 'production', 'test'])
      expect(() => defaultEnvFile(id)).toThrow(/Other programs load.*--env-file/)
    expect(defaultEnvFile('acme')).toBe('.env.acme')
  })
})

test('an agent token gets a name that is valid in a shell', async () => {
  const world = { serviceId: '1demo', announced: [], integrator: {} }
  const gate = { '1DEMO_GATE_AGENT_TOKEN': 'agt_1' }
  const { approval, warnings } = await run({ ...world, gate })
  expect(parseEnv(await readFile(env(), 'utf8'))).toEqual({ _1DEMO_GATE_AGENT_TOKEN: 'agt_1' })
  expect(approval).toMatchObject({ skipped: [], missing: [] })
  expect(warnings).toEqual([])
})

test('announced variables that were not delivered print a warning', async () => {
  const { approval, warnings } = await run({
    announced: ['ACME_KEY', 'ACME_ID', 'NODE_OPTIONS'],
    integrator: { ACME_KEY: 'value', NODE_OPTIONS: 'evil' },
  })
  expect(approval?.missing).toEqual(['ACME_ID', 'ACME_GATE_AGENT_TOKEN'])
  expect(warnings).toEqual([
    'Not delivered, although acme announced it: ACME_ID, ACME_GATE_AGENT_TOKEN.',
  ])
})

describe('the delivery is not written', () => {
  test.each([
    ['NODE_OPTIONS', 'process_critical'],
    ['npm_config_registry', 'process_critical'],
    ['LD_AUDIT', 'process_critical'],
    ['OPENAI_BASE_URL', 'steers_programs'],
    ['CLAUDE_CONFIG_DIR', 'steers_programs'],
    ['RSYNC_RSH', 'steers_programs'],
    ['HTTPS_PROXY', 'process_critical'],
    ['TIDEGATE_URL', 'of_the_operator'],
    ['OTHER_GATE_AGENT_TOKEN', 'gate_managed'],
    ['ACME_GATE_AGENT_TOKEN', 'gate_managed'],
    ['A B', 'not_a_variable_name'],
    ['A\nB=1', 'not_a_variable_name'],
  ])('if a service delivers %j', async (name, reason) => {
    const integrator = { ACME_KEY: 'value', [name]: 'evil' }
    const { approval } = await run({ integrator, announced: ['ACME_KEY', name] })
    expect(approval?.skipped).toEqual([{ name, reason }])
    expect(await readFile(env(), 'utf8')).not.toContain('evil')
  })

  test('if Gate delivers anything but the agent token of this service', async () => {
    const { approval } = await run({ gate: { ACME_KEY: 'evil', OTHER_GATE_AGENT_TOKEN: 'evil' } })
    const skipped = approval?.skipped.map(({ name }) => name)
    expect(skipped).toEqual(['ACME_KEY', 'OTHER_GATE_AGENT_TOKEN'])
    expect(parseEnv(await readFile(env(), 'utf8'))).toEqual({ ACME_KEY: 'value' })
  })
})

test('creates no session if the env file exists', async () => {
  await writeFile(env(), 'B=2\n')
  const { failure, calls } = await run()
  expect(failure).toMatch(/already exists\. No account was requested\. .*--env-file.*--stdout\.$/)
  expect([calls, await readFile(env(), 'utf8')]).toEqual([[], 'B=2\n'])
})

test('creates no session if the env file cannot be written', async () => {
  for (const file of [env('none/.env'), folder]) {
    const { failure, calls } = await run({ file })
    expect([failure, calls]).toEqual([expect.stringMatching(/Cannot write/), []])
  }
})

test('acknowledges nothing if the folder was moved in the meantime', async () => {
  await mkdir(path.join(folder, 'place'))
  const onPoll = () => rename(path.join(folder, 'place'), path.join(folder, 'away'))
  const { failure, calls } = await run({ file: env('place/.env'), onPoll })
  expect(failure).toMatch(/Cannot write.*The credentials are lost; sign up again/)
  expect(calls).toEqual(['create'])
})

test('an acknowledgement whose response was lost counts', async () => {
  const acknowledge = () => Promise.reject(new ApiError('gate.delivery_consumed'))
  expect((await run({ acknowledge })).approval).toMatchObject({ acknowledged: true })
  const refused = () => Promise.reject(new ApiError('gate.delivery_ack_invalid'))
  const { approval } = await run({ acknowledge: refused, file: env('second') })
  expect(approval).toMatchObject({ acknowledged: false })
})
