import { randomBytes } from 'node:crypto'
import pino from 'pino'
import { afterEach, describe, expect, test } from 'vitest'
import { createMissingProxy } from '../../../infra/http/missing-proxy.ts'
import { type CollectApp, startCollectApp } from './collect-app.ts'

let app: CollectApp
afterEach(() => app.close())

const hour = 60 * 60 * 1000
const reason = (what: string) =>
  `Add ${what} to TRUSTED_PROXIES: all clients behind it share one limit.`

interface Sending {
  from: string
  forwarded?: string
  bytes?: number
}

async function start({ trustedProxies = [] as string[], exemptsLoopback = false } = {}) {
  const lines: Record<string, unknown>[] = []
  const logger = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) })
  const clock = { ms: 0 }
  const missingProxy = createMissingProxy({ logger, clock: () => clock.ms })
  app = await startCollectApp({
    sourceMbPerHour: 30,
    missingProxy,
    exemptsLoopback,
    edge: { trustedProxies },
  })
  const key = app.publishable({ clientTarget: 'native_ios' })
  async function send({ from, forwarded, bytes = 0 }: Sending) {
    const { status, json } = await app.send('POST', '/v2/collect/sessions', {
      headers: {
        authorization: `Bearer ${key}`,
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
    return {
      status,
      message: json.error && 'message' in json.error ? json.error.message : undefined,
    }
  }
  const person = (n: number) => `198.51.100.${n % 250}`
  return { lines, clock, missingProxy, send, person }
}

describe('a proxy that TRUSTED_PROXIES lacks', () => {
  test('is named in the log once an hour, to operators and in the refusal', async () => {
    const { lines, clock, missingProxy, send, person } = await start()
    const through = (n: number) => send({ from: '10.0.0.5', forwarded: person(n) })
    for (let n = 0; n < 19; n++) await through(n)
    expect(missingProxy.warning()).toBeUndefined()
    await through(19)
    expect(missingProxy.warning()).toBe(reason('10.0.0.5'))
    const line = {
      address: '10.0.0.5',
      msg: 'proxy missing from TRUSTED_PROXIES: its clients share one limit',
    }
    expect(lines).toEqual([expect.objectContaining({ level: 40, ...line })])
    for (let n = 0; n < 20; n++) await through(n)
    expect(lines).toHaveLength(1)
    clock.ms += hour
    await through(0)
    expect(lines).toHaveLength(2)
    while ((await send({ from: '10.0.0.5', forwarded: person(1), bytes: 200_000 })).status === 200);
    expect(await send({ from: '10.0.0.5', forwarded: person(1), bytes: 200_000 })).toEqual({
      status: 429,
      message: expect.stringContaining('TRUSTED_PROXIES'),
    })
    // A person who is refused alone has nothing to do with it.
    while ((await send({ from: person(3), bytes: 200_000 })).status === 200);
    expect((await send({ from: person(3), bytes: 200_000 })).message).not.toContain(
      'TRUSTED_PROXIES',
    )
  })

  test('is found by its address where it forwards nothing, and a public address is not named', async () => {
    const inside = await start()
    for (let n = 0; n < 20; n++) await inside.send({ from: '172.17.0.1' })
    expect(inside.missingProxy.warning()).toBe(reason('172.17.0.1'))
    await app.close()
    const inIpv6 = await start()
    for (let n = 0; n < 20; n++) await inIpv6.send({ from: 'fd00:0:0:1::5' })
    expect(inIpv6.missingProxy.warning()).toBe(reason('fd00:0:0:1::5'))
    await app.close()
    const outside = await start()
    for (let n = 0; n < 20; n++)
      await outside.send({ from: '203.0.113.7', forwarded: outside.person(n) })
    expect(outside.missingProxy.warning()).toBe(reason('the public address of your reverse proxy'))
    expect(JSON.stringify(outside.lines)).not.toContain('203.0.113.7')
  })

  test('is none where the proxy is trusted, clients come by themselves, or one of many forges headers', async () => {
    const trusted = await start({ trustedProxies: ['10.0.0.0/8'] })
    for (let n = 0; n < 60; n++)
      await trusted.send({ from: '10.0.0.5', forwarded: trusted.person(n) })
    expect(trusted.missingProxy.warning()).toBeUndefined()
    await app.close()
    const direct = await start()
    for (let n = 0; n < 60; n++) {
      await direct.send({ from: direct.person(n) })
      await direct.send({ from: '127.0.0.1' })
      if (n % 2 === 0) await direct.send({ from: '203.0.113.7', forwarded: '192.0.2.1' })
    }
    expect(direct.missingProxy.warning()).toBeUndefined()
    expect([...trusted.lines, ...direct.lines]).toEqual([])
  })

  test('is forgotten once the setting of another process, or the proxy, has changed', async () => {
    const { missingProxy, send, person } = await start()
    for (let n = 0; n < 20; n++) await send({ from: '10.0.0.5', forwarded: person(n) })
    expect(missingProxy.warning()).toBe(reason('10.0.0.5'))
    for (let n = 0; n < 1000; n++) await send({ from: person(n) })
    expect(missingProxy.warning()).toBeUndefined()
  })
})

test('a simulation on the machine of tidegate dev is exempt, and nothing that comes through a proxy', async () => {
  const often = async (
    send: (sending: Sending) => Promise<{ status: number }>,
    sending: Sending,
  ) => {
    const statuses = new Set<number>()
    for (let n = 0; n < 8; n++) statuses.add((await send({ ...sending, bytes: 200_000 })).status)
    return statuses
  }
  const { send } = await start({ exemptsLoopback: true })
  expect(await often(send, { from: '127.0.0.1' })).toEqual(new Set([200]))
  expect(await often(send, { from: '127.0.0.1', forwarded: '192.0.2.1' })).toEqual(
    new Set([200, 429]),
  )
  expect(await often(send, { from: '192.0.2.2' })).toEqual(new Set([200, 429]))
  await app.close()
  const production = await start()
  expect(await often(production.send, { from: '127.0.0.1' })).toEqual(new Set([200, 429]))
})
