import { Registry } from 'prom-client'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { asId } from '../../../../infra/ids.ts'
import type { FindTrusted } from '../../../../services/scoring/identity/trusted-directories.ts'
import { type ApiOrganization, startApi } from '../../../support/api.ts'
import { createMemoryLimiter } from '../../../support/memory-limiter.ts'

let findTrusted: FindTrusted = () => null

const limiter = createMemoryLimiter(() => api.now.ms)
const registering = vi.spyOn(Registry.prototype, 'registerMetric')
const api = await startApi({
  auth: { limiter, defaultLimits: { secret: 600, publishable: 600 } },
  env: { FIRST_PARTY_URLS: 'https://own.example/tg' },
  agents: {
    directories: { find: () => undefined, stop: async () => {} },
    findTrusted: (organization, domain) => findTrusted(organization, domain),
  },
})
const [registered] = registering.mock.contexts
registering.mockRestore()
if (!(registered instanceof Registry)) throw new Error('no metric was registered')
const registry = registered
/** Its live publishable key allows the origin shop.example. */
const shop = await shopOf()
afterAll(() => api.stop())

async function shopOf(): Promise<ApiOrganization> {
  const organization = await api.organization()
  const { organizationId } = organization
  const allowed_origins = ['https://shop.example']
  await api.issue({ organizationId, type: 'publishable', allowed_origins })
  return organization
}

const request = {
  method: 'GET',
  scheme: 'https',
  authority: 'shop.example',
  path: '/?q=1',
  ip: '203.0.113.9',
  headers: [['User-Agent', 'curl/8.14.1']],
}
const chrome =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36'
const byChrome = { ...request, headers: [['user-agent', chrome]], ja4: null }
const fifty = Array(50).fill(request)

const score = (requests: unknown, key = shop.key) =>
  api.send({ method: 'POST', url: '/v1/requests/score', key, body: { requests } })

test('returns results in the order of the requests', async () => {
  const { body } = await score([request, byChrome, { ...request, authority: 'own.example' }])
  expect(body.data).toMatchObject([
    { verdict: 'bot' },
    { verdict: 'inconclusive', unchecked: ['handshake', 'hosting_network'] },
    { verdict: 'bot' },
  ])
})

test('accepts a JA4 with any ALPN value', async () => {
  const { status } = await score([{ ...request, ja4: 't13d1516Zz_8daaf6152771_d8a2da3f94cd' }])
  expect(status).toBe(200)
})

describe('returns 422 for', () => {
  test.each<[string, object, string, string]>([
    ['an invalid address', { ip: '62.1' }, 'ip', 'invalid'],
    ['an address with a zone', { ip: 'fe80::1%eth0' }, 'ip', 'invalid'],
    ['another scheme', { scheme: 'ftp' }, 'scheme', 'invalid_value'],
    ['a path without a slash', { path: 'a' }, 'path', 'invalid_format'],
    ['a host with a user', { authority: 'me@shop.example' }, 'authority', 'invalid_format'],
    ['an unlisted host', { authority: 'other.example' }, 'authority', 'not_allowed'],
    ['headers as an object', { headers: { 'User-Agent': 'x' } }, 'headers', 'invalid_type'],
    ['too many headers', { headers: Array(101).fill(['a', 'b']) }, 'headers', 'too_large'],
    ['oversized headers', { headers: [['Cookie', 'x'.repeat(16_384)]] }, 'headers', 'invalid'],
    ['a header with two lines', { headers: [['a', 'b\r\nc: d']] }, 'headers.0.1', 'invalid'],
    ['a pseudo header', { headers: [[':path', '/']] }, 'headers.0.0', 'invalid_format'],
    ['an invalid JA4', { ja4: 'ja4' }, 'ja4', 'invalid_format'],
    ['an unknown member', { body: '' }, 'body', 'not_allowed'],
  ])('%s', async (_, change, member, issue) => {
    const wrong = { ...request, ...change }
    const { status, body } = await score([request, wrong, wrong])
    const fields = [1, 2].map((index) => ({ name: `requests.${index}.${member}`, issue }))
    expect([status, body.error.details.fields]).toMatchObject([422, fields])
    expect(JSON.stringify(body)).not.toMatch(/other\.example|eth0/)
  })

  test.each([
    [0, 'too_small'],
    [51, 'too_large'],
  ])('%i requests', async (count, issue) => {
    const { status, body } = await score(Array(count).fill(request))
    expect([status, body.error.details.fields]).toMatchObject([422, [{ name: 'requests', issue }]])
  })
})

test('50 browser requests fit into a body', async () => {
  const headers = [...byChrome.headers, ['x-long', 'y'.repeat(8000)]]
  expect((await score(Array(50).fill({ ...byChrome, headers }))).body.data).toHaveLength(50)
})

test('yields to the event loop between slow items', async () => {
  let turns = 0
  let isScoring = true
  const countTurns = () => {
    turns++
    if (isScoring) setImmediate(countTurns)
  }
  const turnsOfItems: number[] = []
  findTrusted = () => {
    if (turnsOfItems.push(turns) === 1) countTurns()
    const end = performance.now() + 10
    while (performance.now() < end);
    return null
  }
  const headers = [['Signature-Agent', '"https://agent.example"']]
  await score(Array(10).fill({ ...request, headers }))
  isScoring = false
  findTrusted = () => null
  expect(new Set(turnsOfItems).size).toBe(10)
})

test('reads the first 1,024 characters of a user agent', async () => {
  const by = (userAgent: string) => ({ ...request, headers: [['User-Agent', userAgent]] })
  const { body } = await score([
    by(`${'x'.repeat(1020)} HeadlessChrome`),
    by(`HeadlessChrome ${'x'.repeat(9000)}`),
  ])
  expect(body.data).toMatchObject([
    { reasons: ['bot_like_user_agent'] },
    { reasons: ['headless_user_agent', 'bot_like_user_agent'] },
  ])
})

test('rejects hosts of other organizations and environments', async () => {
  const { organizationId } = shop
  const other = await api.organization()
  const test = await api.issue({ organizationId, environment: 'test', scopes: ['requests:score'] })
  for (const key of [other.key, test.revealedKey])
    expect((await score([request], key)).status).toBe(422)
})

test('allows the origins of a new key within 15 seconds, until the key is revoked', async () => {
  const { key, path } = await api.organization()
  const isListed = async () => (await score([request], key)).status === 200
  expect(await isListed()).toBe(false)
  const origins = ['https://shop.example']
  const body = { name: 'Page', type: 'publishable', environment: 'live', allowed_origins: origins }
  const made = await api.send({ method: 'POST', url: `${path}/api-keys`, key, body })
  api.now.ms += 15_000
  expect(await isListed()).toBe(true)
  await api.send({ method: 'DELETE', url: `${path}/api-keys/${made.body.data.id}`, key })
  expect(await isListed()).toBe(false)
})

test('each request costs one unit of a separate rate limit', async () => {
  const { organizationId, key, path } = await shopOf()
  expect((await score(fifty, key)).headers).toMatchObject({
    'x-ratelimit-limit': '12000',
    'x-ratelimit-remaining': '11950',
    'x-ratelimit-cost': '50',
  })
  const owner = asId('org', organizationId)
  await limiter.consume({ owner, bucket: 'requests', limit: 12_000, cost: 11_901 })
  expect((await score(fifty, key)).body.error?.code).toBe('rate_limit.exceeded')
  const elsewhere = await api.send({ url: path, key })
  expect(elsewhere.headers).toMatchObject({
    'x-ratelimit-limit': '600',
    'x-ratelimit-remaining': '599',
  })
})

test('an invalid body costs its number of requests, at most 50', async () => {
  const costs = [[], [1, 2, 3], Array(51).fill(request)].map(
    async (requests) => (await score(requests)).headers['x-ratelimit-cost'],
  )
  expect(await Promise.all(costs)).toEqual(['1', '3', '50'])
})

test('counts requests by verdict and agent', async () => {
  const before = await countsOf()
  await score([request, byChrome, byChrome])
  const after = await countsOf()
  const more = Object.entries(after).map(([name, count]) => [name, count - (before[name] ?? 0)])
  expect(more.filter(([, count]) => count !== 0)).toEqual([
    ['bot none', 1],
    ['inconclusive none', 2],
  ])
  expect(more).toHaveLength(10)
})

async function countsOf(): Promise<Record<string, number>> {
  const metric = await registry.getSingleMetric('tidegate_requests_scored_total')?.get()
  return Object.fromEntries(
    (metric?.values ?? []).map(({ labels, value }) => [`${labels.verdict} ${labels.agent}`, value]),
  )
}
