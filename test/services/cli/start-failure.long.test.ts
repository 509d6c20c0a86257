import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { cli } from '../../support/cli.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { startServerProcess } from '../../support/server-process.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const settings = {
  TIDEGATE_MASTER_KEYS: 'A'.repeat(44),
  KAFKA_BROKERS: '',
  LOG_LEVEL: 'silent',
  PORT: '0',
}

describe('a server that does not start', () => {
  it.each([
    [
      'an unreachable database',
      { DATABASE_URL: 'postgres://127.0.0.1:1/none' },
      /ECONNREFUSED/,
      /DATABASE_URL/,
    ],
    ['a missing setting', { DATABASE_URL: '' }, /DATABASE_URL is not set/, /config check/],
  ])('logs one JSON line with a hint: %s', async (_, changes, message, hint) => {
    expect(await failureOf(['serve', '--roles', 'api'], changes)).toMatchObject({
      msg: expect.stringMatching(message),
      hint: expect.stringMatching(hint),
    })
  })

  it('reports that the database belongs to Kafka, rather than missing rights', async () => {
    const database = await createTestDatabase({ empty: true })
    const user = `serving_${randomBytes(6).toString('hex')}`
    await database.pool.query(`create schema tidegate;
      create table tidegate.bound_log (only_one boolean primary key default true, identity text not null);
      insert into tidegate.bound_log (identity) values ('Kafka cluster abc');
      create role ${user} login password 'secret';
      grant usage on schema tidegate to ${user};
      grant select on tidegate.bound_log to ${user}`)
    const url = new URL(database.url)
    url.username = user
    url.password = 'secret'
    const failure = await failureOf(['serve', '--roles', 'api'], { DATABASE_URL: url.href })
    await database.pool.query(`drop owned by ${user}; drop role ${user}`)
    await database.drop()
    const bound =
      /The database belongs to a Kafka log: .*Kafka cluster abc.*KAFKA_BROKERS is not set/
    expect(failure).toMatchObject({ msg: expect.stringMatching(bound) })
    expect(failure).not.toHaveProperty('hint')
  })

  it.each(['127.0.0.1:1', '127.0.0.1:1,127.0.0.1:2'])(
    'a command reports an unreachable log without stack traces: %s',
    async (brokers) => {
      const database = await createTestDatabase()
      const env = { ...settings, LOG_LEVEL: '', KAFKA_BROKERS: brokers, DATABASE_URL: database.url }
      const { code, stdout, stderr } = await cli(['org', 'list'], env)
      await database.drop()
      expect(code).toBe(1)
      expect(stderr).toMatch(/KAFKA_BROKERS/)
      expect(stdout + stderr).not.toMatch(/kafkajs\/src|node:internal|\bat .*:\d+:\d+/)
    },
    30_000,
  )
})

describe('a command with missing dependencies', () => {
  const folder = temporaryFolder('settings')

  it('dev names DATA_DIR if it is not a folder', async () => {
    const dataDir = path.join(folder, 'file')
    await writeFile(dataDir, '')
    const { code, stderr } = await cli(['dev'], { ...settings, DATA_DIR: dataDir })
    expect(code).toBe(1)
    expect(stderr).toContain(`DATA_DIR: ${dataDir} cannot be written`)
  })

  it('dev names KAFKA_BROKERS if no broker responds', async () => {
    const database = await createTestDatabase({ empty: true })
    const unreachable = {
      KAFKA_BROKERS: '127.0.0.1:1',
      LOG_WAIT_MS: '0',
      DATABASE_URL: database.url,
    }
    const { code, stderr } = await cli(['dev'], {
      ...settings,
      ...unreachable,
      DATA_DIR: path.join(folder, 'dev'),
    })
    await database.drop()
    expect(code).toBe(1)
    expect(stderr).toMatch(/^The server did not start: .*\n.*\bKAFKA_BROKERS\b/)
  })

  it.each([
    ['org', 'list'],
    ['signup', 'list'],
  ])('names DATA_DIR if it does not exist: %s %s', async (...command) => {
    const dataDir = path.join(folder, 'none')
    const { code, stderr } = await cli(command, {
      ...settings,
      TIDEGATE_MASTER_KEYS: '',
      DATABASE_URL: '',
      DATA_DIR: dataDir,
    })
    expect(code).toBe(1)
    expect(stderr).toMatch(/\bDATA_DIR\b/)
    expect(stderr).not.toMatch(/\n\s+at /)
  })
})

describe('settings', async () => {
  const database = await createTestDatabase()
  afterAll(() => database.drop())

  it.each([{ TRUSTED_PROXIES: '10.0.0.0/40' }, { PORT: '8799', CONSOLE_PORT: '8799' }])(
    'are rejected by config check with the message of serve: %j',
    async (changes) => {
      const env = { ...settings, DATABASE_URL: database.url, ...changes }
      const { code, stdout, stderr } = await cli(['config', 'check'], env)
      expect([code, stdout]).toEqual([1, ''])
      expect(await failureOf(['serve'], { DATABASE_URL: database.url, ...changes })).toMatchObject({
        msg: `the server did not start: ${stderr.trim()}`,
      })
    },
  )

  it('that config check accepts let serve start', async () => {
    const changes = { TRUSTED_PROXIES: 'loopback, 10.0.0.0/8', WEBHOOK_RETRY_SECONDS: '0,0.5' }
    const env = { ...settings, DATABASE_URL: database.url, METRICS_PORT: '', ...changes }
    const { code, stdout } = await cli(['config', 'check', '--connect'], env)
    expect(stdout).toMatch(
      /^database: PostgreSQL \d+.*\nlog: embedded in the database.*\nmaster keys: /m,
    )
    expect(code).toBe(0)
    const server = await startServerProcess(['serve'], env)
    expect(await server.end('SIGTERM')).toBe(0)
  })
})

describe('other master keys than those of the database', async () => {
  const right = randomBytes(32).toString('base64')
  const wrong = randomBytes(32).toString('base64')
  const database = await createTestDatabase()
  const env = {
    DATA_DIR: temporaryFolder('keys'),
    ...settings,
    DATABASE_URL: database.url,
    TIDEGATE_MASTER_KEYS: wrong,
    LOG_LEVEL: '',
  }
  beforeAll(async () => {
    const first = await startServerProcess(['serve'], { ...env, TIDEGATE_MASTER_KEYS: right })
    await first.end('SIGTERM')
  })
  afterAll(() => database.drop())

  it('stop serve with one line that says what to do', async () => {
    const changes = { DATABASE_URL: database.url, TIDEGATE_MASTER_KEYS: wrong }
    const failure = await failureOf(['serve', '--roles', 'api'], changes)
    expect(failure).toMatchObject({
      msg: expect.stringMatching(/Restore the previous TIDEGATE_MASTER_KEYS/),
    })
    expect(JSON.stringify(failure)).not.toContain(wrong)
  })

  it.each([['dev'], ['org', 'list'], ['config', 'check', '--connect']])(
    'stop tidegate %s',
    async (...args) => {
      const { code, stdout, stderr } = await cli(args, env)
      expect(code).toBe(1)
      expect(stdout + stderr).toMatch(/Restore the previous TIDEGATE_MASTER_KEYS/)
      expect(stdout + stderr).not.toContain(wrong)
      expect(stdout + stderr).not.toMatch(/tidegate config check`/)
    },
  )

  it('do not stop migrate, or a start with the right keys', async () => {
    expect(await cli(['migrate'], env)).toMatchObject({ code: 0 })
    const connected = await cli(['config', 'check', '--connect'], {
      ...env,
      TIDEGATE_MASTER_KEYS: right,
    })
    expect(connected).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/master keys: match the database/),
    })
  })
})

it('config check --connect reports unreachable services in limited time', async () => {
  const unreachable = { DATABASE_URL: 'postgres://127.0.0.1:1/none', KAFKA_BROKERS: '127.0.0.1:1' }
  const { code, stdout, stderr } = await cli(['config', 'check', '--connect'], {
    ...settings,
    ...unreachable,
  })
  expect(code).toBe(1)
  expect(stdout).toMatch(/^database: failed: .*ECONNREFUSED/m)
  expect(stdout).toMatch(/^log: failed: /m)
  expect(stdout).toMatch(/^master keys: failed: /m)
  expect(stderr).toBe('A server could not start: see the failed checks above.\n')
}, 60_000)

test.each([
  [[], { DATABASE_URL: 'postgres://127.0.0.1:1/none' }, /ECONNREFUSED/, /DATABASE_URL/],
  [[], { KAFKA_SASL_MECHANISM: 'NONE' }, /KAFKA_SASL_MECHANISM/, /config check/],
  [['--organization', 'acme'], {}, /--organization needs --analysts/, undefined],
])('migrate %j with %j is logged as a failed start', async (args, changes, message, hint) => {
  const failure = await failureOf(['migrate', ...args], changes)
  expect(failure).toMatchObject({ msg: expect.stringMatching(message) })
  if (hint) expect(failure).toMatchObject({ hint: expect.stringMatching(hint) })
})

/** Returns the only line that the failed command prints. */
async function failureOf(args: string[], changes: Record<string, string>): Promise<unknown> {
  const { code, stdout } = await cli(args, { ...settings, ...changes })
  expect(code).toBe(1)
  const lines = stdout.split('\n').filter(Boolean)
  expect(lines).toHaveLength(1)
  const failure: unknown = JSON.parse(lines[0] ?? '')
  expect(failure).toMatchObject({ level: 'fatal' })
  return failure
}
