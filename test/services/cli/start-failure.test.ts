import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cli } from '../../support/cli.ts'

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
    const { code, stdout } = await cli(['serve', '--roles', 'api'], { ...settings, ...given })
    expect(code).toBe(1)
    const lines = stdout.split('\n').filter(Boolean)
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      level: 'fatal',
      msg: expect.stringMatching(message),
      hint: expect.stringMatching(hint),
    })
  })
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
