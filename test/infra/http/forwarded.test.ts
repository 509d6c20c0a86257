import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApp } from '../../../infra/http/app.ts'
import { cpuTimeOf } from '../../support/cpu-time.ts'

// As many networks as a content delivery network publishes.
const networks = Array.from({ length: 20 }, (_, i) => `2001:db8:${i}::/48`)
let app: FastifyInstance

beforeAll(async () => {
  const logger = pino({ level: 'silent' })
  const trustedProxies = [...networks, '127.0.0.1', '::1', '10.0.0.0/8']
  const publicUrl = 'https://tidegate.example'
  app = await createApp({ logger, random: randomBytes, publicUrl, trustedProxies })
  app.get('/ip', ({ ip, ips }) => ({ ip, hops: ips?.length }))
})
afterAll(() => app.close())

const ask = async (forwardedFor: string) => {
  const response = await app.inject({ url: '/ip', headers: { 'x-forwarded-for': forwardedFor } })
  return response.json()
}

test('the client of a chain of proxies is found', async () => {
  const proxies = Array.from({ length: 15 }, (_, i) => `10.0.0.${i}`)
  expect(await ask(['203.0.113.9', ...proxies].join(', '))).toMatchObject({ ip: '203.0.113.9' })
})

test('of a longer chain the last 16 entries are read', async () => {
  const proxies = Array.from({ length: 40 }, (_, i) => `10.0.0.${i}`)
  expect(await ask(['203.0.113.9', ...proxies].join(', '))).toEqual({ ip: '10.0.0.24', hops: 17 })
})

test.each(['::1,', '10.0.0.1,', '127.0.0.1,', ','])(
  '15 KB of "%s" costs less than 30 honest headers',
  async (entry) => {
    const honest = await cpuTimeOf(() => ask('203.0.113.9, 10.0.0.1'))
    const hostile = await cpuTimeOf(() => ask(`${entry.repeat(15_000 / entry.length)}::1`))
    expect(hostile / honest).toBeLessThan(30)
  },
)
