import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { readConfig, settingNames } from '../../infra/config.ts'

describe('settings', () => {
  it('have defaults for everything that a development start needs', () => {
    expect(readConfig({})).toMatchObject({
      PORT: 8787,
      DATA_DIR: '.tidegate',
      KAFKA_BROKERS: [],
      TRUSTED_PROXIES: [],
    })
  })

  it('name every bad value in one error', () => {
    expect(() => readConfig({ PORT: 'x', LOG_LEVEL: 'loud' })).toThrow(/PORT[\s\S]*LOG_LEVEL/)
  })

  it('let a bucket of secret keys admit the most expensive request', () => {
    const least = readConfig({ RATE_LIMIT_SECRET: '10', RATE_LIMIT_PUBLISHABLE: '1' })
    expect(least).toMatchObject({ RATE_LIMIT_SECRET: 10, RATE_LIMIT_PUBLISHABLE: 1 })
    expect(() => readConfig({ RATE_LIMIT_SECRET: '9' })).toThrow(/RATE_LIMIT_SECRET/)
    expect(() => readConfig({ RATE_LIMIT_PUBLISHABLE: '0' })).toThrow(/RATE_LIMIT_PUBLISHABLE/)
  })

  it('treat an empty value as not set', () => {
    const config = readConfig({ PORT: '', DATABASE_URL: '' })
    expect([config.PORT, config.DATABASE_URL]).toEqual([8787, undefined])
  })

  it('are all in the documentation, and nothing else is', async () => {
    const page = await readFile(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
    const documented = [...page.matchAll(/^\| `([A-Z_]+)` \|/gm)].map((match) => match[1])
    expect(documented).toEqual(settingNames)
  })
})
