import { afterAll, expect, test } from 'vitest'
import { cpuTimeOf } from '../../support/cpu-time.ts'
import { createTestApp } from './test-app.ts'

// As many networks as a content delivery network publishes.
const networks = Array.from({ length: 20 }, (_, i) => `2001:db8:${i}::/48`)

const trustedProxies = [...networks, '127.0.0.1', '::1', '10.0.0.0/8']
const app = await createTestApp({ trustedProxies })
app.get('/ip', ({ ip, ips }) => ({ ip, hops: ips?.length }))
afterAll(() => app.close())

const get = async (forwardedFor: string) => {
  const response = await app.inject({ url: '/ip', headers: { 'x-forwarded-for': forwardedFor } })
  return response.json()
}

test('finds the client behind a chain of proxies, and ignores entries that the client made up', async () => {
  const proxies = Array.from({ length: 14 }, (_, i) => `10.0.0.${i}`)
  const chain = ['198.51.100.1', '203.0.113.9', '', ...proxies].join(', ')
  expect(await get(chain)).toMatchObject({ ip: '203.0.113.9' })
  const headers = { 'x-forwarded-for': '203.0.113.9' }
  const strange = await app.inject({ url: '/ip', headers, remoteAddress: '192.0.2.1' })
  expect(strange.json()).toMatchObject({ ip: '192.0.2.1' })
})

test('reads the last 16 entries of a longer chain', async () => {
  const proxies = Array.from({ length: 40 }, (_, i) => `10.0.0.${i}`)
  expect(await get(['203.0.113.9', ...proxies].join(', '))).toEqual({ ip: '10.0.0.24', hops: 17 })
})

test.each([
  ['203.0.113.9:51234', '203.0.113.9'],
  ['[2001:db8:99::1]', '2001:db8:99::1'],
  ['[2001:db8:99::1]:443', '2001:db8:99::1'],
  ['2001:DB8:99:0::1', '2001:db8:99::1'],
  [`fe80::1%${'x'.repeat(5000)}`, 'fe80::1'],
  ['[fe80::1%eth0]:1', 'fe80::1'],
  ['::ffff:203.0.113.9', '203.0.113.9'],
  ['[::ffff:cb00:7109]:80', '203.0.113.9'],
])('the entry %s is the client %s', async (entry, ip) => {
  expect(await get(entry)).toMatchObject({ ip })
  expect(await get(`${entry}, 10.0.0.1:80, ::ffff:10.0.0.2, [2001:db8:1::9]:8080`)).toMatchObject({
    ip,
  })
})

test.each([
  'unknown',
  '_hidden',
  '198.51.100.07',
  '167772161',
  '203.0.113',
  '203.0.113.9:',
  '[203.0.113.9',
  '2001:db8::1]:80',
  '1.2.3.4:999999',
])('ignores entries to the left of %j', async (entry) => {
  expect(await get(`203.0.113.9, ${entry}, 10.0.0.7`)).toMatchObject({ ip: '10.0.0.7' })
})

test.each([
  ['10.0.0.0/8', '::ffff:10.0.0.1', true],
  ['10.0.0.0/8', '::a00:1', false],
  ['10.0.0.0/8', 'a00::1', false],
  ['::ffff:10.0.0.1', '10.0.0.1', true],
  ['2000::/3', '203.0.113.1', false],
  ['2000::/3', '::ffff:203.0.113.1', false],
  ['::/1', '10.0.0.1', false],
])('trusting %s, trusts %s: %j', async (network, proxy, isTrusted) => {
  const own = await createTestApp({ trustedProxies: ['127.0.0.1', network] })
  own.get('/ip', ({ ip }) => ({ ip }))
  const headers = { 'x-forwarded-for': `198.51.100.7, ${proxy}` }
  const { ip } = (await own.inject({ url: '/ip', headers })).json()
  expect(ip === '198.51.100.7').toBe(isTrusted)
  await own.close()
})

test.each(['::1,', '10.0.0.1,', '127.0.0.1,', ','])(
  '15 KB of "%s" cost less than 30 usual headers',
  async (entry) => {
    const usual = await cpuTimeOf(() => get('203.0.113.9, 10.0.0.1'))
    const hostile = await cpuTimeOf(() => get(`${entry.repeat(15_000 / entry.length)}::1`))
    expect(hostile / usual).toBeLessThan(30)
  },
)
