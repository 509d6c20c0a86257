import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, it } from 'vitest'
import { readConfig, settingNames } from '../../infra/config.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

it('all settings that a development start needs have defaults', () => {
  const expected = { PORT: 8787, DATA_DIR: '.tidegate', KAFKA_BROKERS: [], TRUSTED_PROXIES: [] }
  expect(readConfig({})).toMatchObject(expected)
})

it('one error lists every invalid setting', () => {
  expect(() => readConfig({ PORT: 'x', LOG_LEVEL: 'loud' })).toThrow(/PORT[\s\S]*LOG_LEVEL/)
})

it('rate limits are at least the cost of the most expensive request', () => {
  const least = readConfig({ RATE_LIMIT_SECRET: '10', RATE_LIMIT_PUBLISHABLE: '1' })
  expect(least).toMatchObject({ RATE_LIMIT_SECRET: 10, RATE_LIMIT_PUBLISHABLE: 1 })
  expect(() => readConfig({ RATE_LIMIT_SECRET: '9' })).toThrow(/RATE_LIMIT_SECRET/)
  expect(() => readConfig({ RATE_LIMIT_PUBLISHABLE: '0' })).toThrow(/RATE_LIMIT_PUBLISHABLE/)
})

it('the console rate limit allows the overview page', () => {
  expect(() => readConfig({ RATE_LIMIT_CONSOLE: '99' })).toThrow(/RATE_LIMIT_CONSOLE/)
})

it.each([
  ['https://tidegate.example', 'https://tidegate.example'],
  ['https://tidegate.example/', 'https://tidegate.example'],
  ['HTTPS://Tidegate.Example:443', 'https://tidegate.example'],
  ['https://tidegate.example/below/', 'https://tidegate.example/below'],
  ['http://127.0.0.1:8787', 'http://127.0.0.1:8787'],
  ['http://[0:0:0:0:0:0:0:1]:8787/', 'http://[::1]:8787'],
])('PUBLIC_URL %s is normalized to %s', (given, origin) => {
  expect(readConfig({ PUBLIC_URL: given }).PUBLIC_URL).toBe(origin)
})

it.each([
  'https://tidegate.example/?a=b',
  'https://tidegate.example?',
  'https://tidegate.example/#a',
  'https://user@tidegate.example',
  'https://:secret@tidegate.example',
  'wss://tidegate.example',
  'tidegate.example',
  'localhost:8787',
])('PUBLIC_URL %s is invalid', (address) => {
  expect(() => readConfig({ PUBLIC_URL: address })).toThrow(
    /^Settings are not valid:\n {2}PUBLIC_URL must be a URL such as/,
  )
})

it.each([
  ['cloudfront', { ja4: 'cloudfront-viewer-ja4-fingerprint' }],
  ['haproxy', { ja4: 'x-ja4', http2: 'x-http2-fingerprint' }],
  ['ja4=X-Client-JA4, http2=X-Client-H2', { ja4: 'x-client-ja4', http2: 'x-client-h2' }],
  ['http2=X-Client-H2', { http2: 'x-client-h2' }],
])('EDGE_HEADERS accepts %s', (given, headers) => {
  const config = readConfig({ EDGE_HEADERS: given, TRUSTED_PROXIES: '10.0.0.0/8' })
  expect(config.EDGE_HEADERS).toEqual(headers)
})

it.each(['akamai', 'ja4=', 'ja4=X Y', 'ja3=X-JA3', 'constructor'])(
  'EDGE_HEADERS %s is invalid',
  (given) => {
    expect(() => readConfig({ EDGE_HEADERS: given, TRUSTED_PROXIES: '10.0.0.0/8' })).toThrow(
      /EDGE_HEADERS/,
    )
  },
)

it.each(['TLS_CERT_FILE', 'TLS_KEY_FILE', 'TLS_PORT'])(
  'the removed setting %s causes an error',
  (name) => {
    const expected = `${name} was removed: terminate TLS in a proxy (docs/operate/proxies.md) and unset it`
    expect(() => readConfig({ [name]: '8443' })).toThrow(expected)
    expect(() => readConfig({ [name]: '' })).not.toThrow()
  },
)

it('EDGE_HEADERS needs TRUSTED_PROXIES', () => {
  expect(() => readConfig({ EDGE_HEADERS: 'bunny' })).toThrow(/EDGE_HEADERS needs TRUSTED_PROXIES/)
})

it('an empty value counts as not set', () => {
  const config = readConfig({ PORT: '', DATABASE_URL: '' })
  expect([config.PORT, config.DATABASE_URL]).toEqual([8787, undefined])
})

const folder = temporaryFolder('config')

it('secrets can be read from files', async () => {
  const file = path.join(folder, 'url')
  await writeFile(file, 'postgres://user@host/tidegate\n')
  await writeFile(path.join(folder, 'empty'), '\n')
  const url = 'postgres://user@host/tidegate'
  expect(readConfig({ DATABASE_URL_FILE: file }).DATABASE_URL).toBe(url)
  const both = { DATABASE_URL: url, DATABASE_URL_FILE: file }
  expect(() => readConfig(both)).toThrow('DATABASE_URL_FILE: DATABASE_URL is also set')
  const bad = {
    DATABASE_URL_FILE: `${folder}/none`,
    TIDEGATE_MASTER_KEYS_FILE: `${folder}/empty`,
  }
  expect(() => readConfig(bad)).toThrow(
    /DATABASE_URL_FILE: .*none cannot be read \(ENOENT\)\n.*TIDEGATE_MASTER_KEYS_FILE: .* is empty/,
  )
})

it('the documentation lists exactly the settings', async () => {
  const file = new URL('../../docs/reference/configuration.md', import.meta.url)
  const page = await readFile(file, 'utf8')
  const documented = [...page.matchAll(/^\| `([A-Z_]+)` \|/gm)].map((match) => match[1])
  expect(documented).toEqual(settingNames)
})
