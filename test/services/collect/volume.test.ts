import { randomBytes } from 'node:crypto'
import pino from 'pino'
import { afterEach, describe, expect, test } from 'vitest'
import { createMissingProxyDetector } from '../../../infra/http/missing-proxy.ts'
import { type CollectApp, startCollectApp } from './collect-app.ts'

let app: CollectApp
let key: string
afterEach(() => app.close())

type Options = Parameters<typeof startCollectApp>[0]
const otherOrganization = { organizationId: 'org_00000000000000000000000002' } as const
const iosKey = (facts = {}) => app.publishable({ clientTarget: 'native_ios', ...facts })

async function start(options: Options = {}) {
  await app?.close()
  app = await startCollectApp({ sourceMbPerHour: 30, ...options })
  key = iosKey()
}

interface Sending {
  from: string
  /** Value of X-Forwarded-For. */
  forwarded?: string
  /** Approximate size of the body. */
  bytes?: number
  by?: string
}

/** Opens a session. */
async function send({ from, forwarded, bytes = 0, by = key }: Sending) {
  const { status, json, headers } = await app.send('POST', '/v2/collect/sessions', {
    headers: {
      authorization: `Bearer ${by}`,
      'content-type': 'application/json',
      ...(forwarded && { 'x-forwarded-for': forwarded }),
    },
    payload: JSON.stringify({
      clientPublicKey: randomBytes(32).toString('base64url'),
      sdk: { name: 'test', version: '1', platform: 'ios' },
      ignored: 'x'.repeat(bytes),
    }),
    remoteAddress: from,
  })
  const { code, message } = json.error ?? {}
  return { status, code, message, retryAfter: headers['retry-after'] }
}

/** Returns the statuses of eight large requests. */
async function statusesOf(sending: Sending) {
  const statuses = new Set<number>()
  for (let n = 0; n < 8; n++) statuses.add((await send({ ...sending, bytes: 200_000 })).status)
  return [...statuses]
}

describe('the volume of one source', () => {
  test('is limited per hour, with a burst of a thirtieth of the limit', async () => {
    await start()
    const bytes = 100_000
    let sent = 0
    for (let second = 0; second < 3600; second += 6) {
      if ((await send({ bytes, from: '192.0.2.1' })).status === 200) sent += bytes
      app.now.ms += 6000
    }
    expect(sent).toBeLessThanOrEqual(31_000_000)
    expect(sent).toBeGreaterThan(28_000_000)
  })

  test('gets 429 with any key, while other sources are accepted', async () => {
    await start()
    const big = { bytes: 240_000, from: '192.0.2.1' }
    for (let i = 0; i < 4; i++) expect((await send(big)).status).toBe(200)
    const refused = { status: 429, code: 'rate_limit.exceeded', retryAfter: '1' }
    expect(await send(big)).toMatchObject(refused)
    expect(await send({ ...big, by: iosKey(otherOrganization) })).toMatchObject(refused)
    expect((await send({ ...big, from: '192.0.2.2' })).status).toBe(200)
  })

  test('includes the overhead of recording, even for small requests', async () => {
    await start()
    let accepted = 0
    while ((await send({ from: '192.0.2.1' })).status === 200) accepted++
    expect(accepted).toBeGreaterThan(200)
    expect(accepted).toBeLessThan(330)
  })
})

describe('the volume of one organization', () => {
  const big = (i: number) => ({ bytes: 240_000, from: `192.0.2.${i}` })

  test('is unlimited by default', async () => {
    await start()
    for (let i = 0; i < 20; i++) expect((await send(big(i))).status).toBe(200)
  })

  test('is limited by the setting of the operator, across all sources', async () => {
    await start({ sourceMbPerHour: 900, organizationMbPerHour: 30 })
    for (let i = 0; i < 4; i++) expect((await send(big(i))).status).toBe(200)
    expect((await send(big(5))).status).toBe(429)
    expect((await send({ ...big(6), by: iosKey(otherOrganization) })).status).toBe(200)
  })
})

describe('a proxy missing from TRUSTED_PROXIES', () => {
  const reason = (what: string) =>
    `Add ${what} to TRUSTED_PROXIES: all clients behind it share one limit.`
  const person = (n: number) => `198.51.100.${n % 250}`

  async function startWatched(trustedProxies: string[] = []) {
    const lines: Record<string, unknown>[] = []
    const logger = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) })
    const clock = { ms: 0 }
    const missingProxy = createMissingProxyDetector({ logger, clock: () => clock.ms })
    await start({ missingProxy, edge: { trustedProxies } })
    return { lines, clock, warning: () => missingProxy.warning() }
  }

  test('is logged once an hour, and named in warnings and in the 429', async () => {
    const { lines, clock, warning } = await startWatched()
    const through = (n: number) => send({ from: '10.0.0.5', forwarded: person(n) })
    for (let n = 0; n < 19; n++) await through(n)
    expect(warning()).toBeUndefined()
    await through(19)
    expect(warning()).toBe(reason('10.0.0.5'))
    const msg = 'proxy missing from TRUSTED_PROXIES: its clients share one rate limit'
    expect(lines).toMatchObject([{ level: 40, address: '10.0.0.5', msg }])
    for (let n = 0; n < 20; n++) await through(n)
    expect(lines).toHaveLength(1)
    clock.ms += 60 * 60 * 1000
    await through(0)
    expect(lines).toHaveLength(2)
    const refusalOf = async (sending: Sending) => {
      for (;;) {
        const { status, message } = await send({ ...sending, bytes: 200_000 })
        if (status === 429) return message
      }
    }
    const proxied = await refusalOf({ from: '10.0.0.5', forwarded: person(1) })
    expect(proxied).toContain('TRUSTED_PROXIES')
    expect(await refusalOf({ from: person(3) })).not.toContain('TRUSTED_PROXIES')
  })

  test.each([
    ['172.17.0.1', '172.17.0.1', false],
    ['fd00:0:0:1::5', 'fd00:0:0:1::5', false],
    ['203.0.113.7', 'the public address of your reverse proxy', true],
  ])('at %s is reported as %s', async (from, name, forwards) => {
    const { lines, warning } = await startWatched()
    for (let n = 0; n < 20; n++) await send({ from, ...(forwards && { forwarded: person(n) }) })
    expect(warning()).toBe(reason(name))
    if (name !== from) expect(JSON.stringify(lines)).not.toContain(from)
  })

  test('is not reported if the proxy is trusted, clients connect directly, or one of many forges headers', async () => {
    const trusted = await startWatched(['10.0.0.0/8'])
    for (let n = 0; n < 60; n++) await send({ from: '10.0.0.5', forwarded: person(n) })
    const direct = await startWatched()
    for (let n = 0; n < 60; n++) {
      await send({ from: person(n) })
      await send({ from: '127.0.0.1' })
      if (n % 2 === 0) await send({ from: '203.0.113.7', forwarded: '192.0.2.1' })
    }
    expect([trusted.warning(), direct.warning()]).toEqual([undefined, undefined])
    expect([...trusted.lines, ...direct.lines]).toEqual([])
  })

  test('is forgotten after the setting of another process, or the proxy, changed', async () => {
    const { warning } = await startWatched()
    for (let n = 0; n < 20; n++) await send({ from: '10.0.0.5', forwarded: person(n) })
    expect(warning()).toBe(reason('10.0.0.5'))
    for (let n = 0; n < 1000; n++) await send({ from: person(n) })
    expect(warning()).toBeUndefined()
  })
})

test('a local simulation under tidegate dev is exempt, but not requests through a proxy', async () => {
  await start({ exemptsLoopback: true })
  expect(await statusesOf({ from: '127.0.0.1' })).toEqual([200])
  expect(await statusesOf({ from: '127.0.0.1', forwarded: '192.0.2.1' })).toEqual([200, 429])
  expect(await statusesOf({ from: '192.0.2.2' })).toEqual([200, 429])
  await start()
  expect(await statusesOf({ from: '127.0.0.1' })).toEqual([200, 429])
})
