import { describe, expect, it } from 'vitest'
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
