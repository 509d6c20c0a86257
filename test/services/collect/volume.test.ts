import { randomBytes } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type CollectApp, startCollectApp } from './collect-app.ts'

let app: CollectApp
afterEach(() => app.close())

const megabyte = 1_000_000
const [one = '', other = ''] = ['192.0.2.1', '192.0.2.2']

/** Opens a session with a body of so many bytes or a few more. */
async function send(key: string, { bytes, from }: { bytes: number; from: string }) {
  const { status, json, headers } = await app.send('POST', '/v2/collect/sessions', {
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    payload: JSON.stringify({
      clientPublicKey: randomBytes(32).toString('base64url'),
      sdk: { name: 'test', version: '1', platform: 'ios' },
      ignored: 'x'.repeat(bytes),
    }),
    remoteAddress: from,
  })
  return { status, code: json.error?.code, retryAfter: headers['retry-after'] }
}

const ios = (organizationId?: 'org_00000000000000000000000002') =>
  app.publishable({ clientTarget: 'native_ios', ...(organizationId ? { organizationId } : {}) })

describe('what one source sends', () => {
  test('is no more in an hour than its limit, and a thirtieth of it at once', async () => {
    app = await startCollectApp({ sourceMbPerHour: 30 })
    const key = ios()
    const bytes = 100_000
    let sent = 0
    for (let second = 0; second < 3600; second += 6) {
      const { status } = await send(key, { bytes, from: one })
      if (status === 200) sent += bytes
      app.now.ms += 6000
    }
    expect(sent).toBeLessThanOrEqual(31 * megabyte)
    expect(sent).toBeGreaterThan(28 * megabyte)
  })

  test('is refused by 429, and that of another is not', async () => {
    app = await startCollectApp({ sourceMbPerHour: 30 })
    const key = ios()
    const big = { bytes: 240_000, from: one }
    for (let i = 0; i < 4; i++) expect((await send(key, big)).status).toBe(200)
    expect(await send(key, big)).toEqual({
      status: 429,
      code: 'rate_limit.exceeded',
      retryAfter: '1',
    })
    expect((await send(ios('org_00000000000000000000000002'), big)).status).toBe(429)
    expect((await send(key, { ...big, from: other })).status).toBe(200)
  })

  test('counts with what is recorded because of it, however small it is', async () => {
    app = await startCollectApp({ sourceMbPerHour: 30 })
    const key = ios()
    let taken = 0
    while ((await send(key, { bytes: 0, from: one })).status === 200) taken++
    expect(taken).toBeGreaterThan(200)
    expect(taken).toBeLessThan(330)
  })
})

describe('what is sent with the keys of one organization', () => {
  test('has no limit of its own', async () => {
    app = await startCollectApp({ sourceMbPerHour: 30 })
    const key = ios()
    for (let i = 0; i < 20; i++)
      expect((await send(key, { bytes: 240_000, from: `192.0.2.${i}` })).status).toBe(200)
  })

  test('has the one that an operator sets, from however many sources it comes', async () => {
    app = await startCollectApp({ sourceMbPerHour: 900, organizationMbPerHour: 30 })
    const key = ios()
    const big = (i: number) => ({ bytes: 240_000, from: `192.0.2.${i}` })
    for (let i = 0; i < 4; i++) expect((await send(key, big(i))).status).toBe(200)
    expect((await send(key, big(5))).status).toBe(429)
    expect((await send(ios('org_00000000000000000000000002'), big(6))).status).toBe(200)
  })
})
