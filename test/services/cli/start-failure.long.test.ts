import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { cli } from '../../support/cli.ts'
import { createTestDatabase } from '../../support/postgres.ts'

const settings = { TIDEGATE_MASTER_KEYS: 'A'.repeat(44), KAFKA_BROKERS: '', LOG_LEVEL: 'silent', PORT: '0' }

describe('a server that does not start', () => {
  it.each([
    [
      'a database that is not there',
      { DATABASE_URL: 'postgres://127.0.0.1:1/none' },
      /ECONNREFUSED/,
      /DATABASE_URL/,
    ],
    ['a setting that is missing', { DATABASE_URL: '' }, /DATABASE_URL is not set/, /config check/],
    [
      'settings that do not fit together',
      { DATABASE_URL: 'postgres://127.0.0.1:1/none', KAFKA_SASL_MECHANISM: 'PLAIN' },
      /KAFKA_SECURITY_PROTOCOL/,
      /config check/,
    ],
  ])('says so in one JSON line with a hint: %s', async (_, given, message, hint) => {
    expect(await failureOf(['serve', '--roles', 'api'], given)).toMatchObject({
      msg: expect.stringMatching(message),
      hint: expect.stringMatching(hint),
    })
  })

  it('says that the database is bound to Kafka before it speaks of tables that it may not make', async () => {
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
    expect(failure).toMatchObject({
      msg: expect.stringMatching(
        /The database is bound to Kafka: .*Kafka cluster abc.*KAFKA_BROKERS is not set/,
      ),
      hint: 'the message says the way out',
    })
  })

  it.each(['127.0.0.1:1', '127.0.0.1:1,127.0.0.1:2'])(
    'a command says in a line that the log is away, without the stacks of its client: %s',
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

describe('a command on a machine where something is missing', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-settings-'))
    await writeFile(path.join(folder, 'file'), '')
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('dev names DATA_DIR where it is no folder', async () => {
    const dataDir = path.join(folder, 'file')
    const { code, stderr } = await cli(['dev'], { ...settings, DATA_DIR: dataDir })
    expect(code).toBe(1)
    expect(stderr).toContain(`DATA_DIR: ${dataDir} cannot be written`)
  })

  it('dev names KAFKA_BROKERS where no broker answers', async () => {
    const database = await createTestDatabase({ empty: true })
    const away = { KAFKA_BROKERS: '127.0.0.1:1', LOG_WAIT_MS: '0', DATABASE_URL: database.url }
    const { code, stderr } = await cli(['dev'], { ...settings, ...away, DATA_DIR: path.join(folder, 'dev') })
    await database.drop()
    expect(code).toBe(1)
    expect(stderr).toMatch(/^The server did not start: .*\n.*\bKAFKA_BROKERS\b/)
  })

  it.each([
    ['org', 'list'],
    ['simulate'],
    ['webhooks', 'dead-letters'],
    ['gate', 'dev-integrator'],
    ['signup', 'list'],
  ])('names DATA_DIR where there is none: %s %s', async (...command) => {
    const dataDir = path.join(folder, 'none')
    const { code, stderr } = await cli(command.filter(Boolean), {
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

test('tables and topics that could not be made are told as a start that failed', async () => {
  expect(await failureOf(['migrate'], { DATABASE_URL: 'postgres://127.0.0.1:1/none' })).toMatchObject({
    msg: expect.stringMatching(/ECONNREFUSED/),
    hint: expect.stringMatching(/DATABASE_URL/),
  })
  const { stdout } = await cli(['migrate'], { ...settings, KAFKA_SASL_MECHANISM: 'NONE' })
  expect(JSON.parse(stdout)).toMatchObject({ level: 'fatal', hint: expect.stringMatching(/config check/) })
})

/** The one line that it prints. */
async function failureOf(args: string[], given: Record<string, string>): Promise<unknown> {
  const { code, stdout } = await cli(args, { ...settings, ...given })
  expect(code).toBe(1)
  const lines = stdout.split('\n').filter(Boolean)
  expect(lines).toHaveLength(1)
  const failure: unknown = JSON.parse(lines[0] ?? '')
  expect(failure).toMatchObject({ level: 'fatal' })
  return failure
}
