import { Registry } from 'prom-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { asId } from '../../../../infra/ids.ts'
import { noNetwork } from '../../../../infra/ip/network.ts'
import type { FindTrusted } from '../../../../services/scoring/identity/trusted.ts'
import { countRequests } from '../../../../services/scoring/requests/metrics.ts'
import { requestRoutes } from '../../../../services/scoring/requests/routes.ts'
import { createMemoryLimiter, type MemoryLimiter } from '../../../support/memory-limiter.ts'
import { type Organizations, startOrganizations } from '../../organizations/support.ts'

let world: Organizations
let limiter: MemoryLimiter
let key: string
let organizationId: string
const registry = new Registry()
let findTrusted: FindTrusted = () => null
const url = '/v1/requests/score'

beforeAll(async () => {
  limiter = createMemoryLimiter(() => world.now.ms)
  world = await startOrganizations({ limiter })
  requestRoutes(world.app, {
    ...world.context,
    network: noNetwork,
    directories: { find: () => undefined },
    findTrusted: (organization, domain) => findTrusted(organization, domain),
    firstPartyUrls: ['https://own.example/tg'],
    maxLifetimeMs: 3_600_000,
    onScored: countRequests(registry),
  })
  const own = await world.organization()
  organizationId = own.organizationId
  key = own.key
  await world.issue({
    organizationId,
    type: 'publishable',
    allowed_origins: ['https://shop.example'],
  })
  await world.issue({ organizationId, type: 'publishable', allowed_origins: [] })
})
afterAll(() => world.stop())

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

const score = (requests: unknown, as = key) =>
  world.send({ method: 'POST', url, key: as, body: { requests } })

test('each request is answered in its place', async () => {
  const { status, body } = await score([
    request,
    byChrome,
    { ...request, authority: 'own.example' },
  ])
  expect([status, body.data]).toMatchObject([
    200,
    [{ verdict: 'bot' }, { verdict: 'inconclusive' }, { verdict: 'bot' }],
  ])
  expect(body.data[1]).toEqual({
    verdict: 'inconclusive',
    agent: {
      status: 'none',
      provider: null,
      product: null,
      purpose: null,
      method: null,
      evidence: null,
    },
    reasons: [],
    unchecked: ['handshake', 'hosting_network'],
  })
})

test('a JA4 is taken with whatever protocol its client offers first', async () => {
  const { status } = await score([{ ...request, ja4: 't13d1516Zz_8daaf6152771_d8a2da3f94cd' }])
  expect(status).toBe(200)
})

describe('422 names', () => {
  test.each<[string, object, string, string]>([
    ['an address that is none', { ip: '62.1' }, 'ip', 'invalid'],
    ['an address with a zone', { ip: 'fe80::1%eth0' }, 'ip', 'invalid'],
    ['another scheme', { scheme: 'ftp' }, 'scheme', 'invalid_value'],
    ['a path without a slash', { path: 'a' }, 'path', 'invalid_format'],
    ['a host with a user', { authority: 'me@shop.example' }, 'authority', 'invalid_format'],
    ['a host that nobody lists', { authority: 'other.example' }, 'authority', 'not_allowed'],
    ['headers by name', { headers: { 'User-Agent': 'x' } }, 'headers', 'invalid_type'],
    ['too many headers', { headers: Array(101).fill(['a', 'b']) }, 'headers', 'too_large'],
    ['too large headers', { headers: [['Cookie', 'x'.repeat(16_384)]] }, 'headers', 'invalid'],
    ['a header with two lines', { headers: [['a', 'b\r\nc: d']] }, 'headers.0.1', 'invalid'],
    ['a pseudo header', { headers: [[':path', '/']] }, 'headers.0.0', 'invalid_format'],
    ['a JA4 that is none', { ja4: 'ja4' }, 'ja4', 'invalid_format'],
    ['a member too many', { body: '' }, 'body', 'not_allowed'],
  ])('%s', async (_, change, member, issue) => {
    const { status, body } = await score([request, { ...request, ...change }])
    expect(status).toBe(422)
    expect(body.error.details.parameter_set).toBe('request_score')
    expect(body.error.details.fields).toMatchObject([{ name: `requests.1.${member}`, issue }])
    expect(JSON.stringify(body)).not.toMatch(/other\.example|eth0/)
  })

  test('every host that nobody lists', async () => {
    const foreign = { ...request, authority: 'other.example' }
    const { body } = await score([foreign, request, foreign])
    const names = body.error.details.fields.map(({ name }: { name: string }) => name)
    expect(names).toEqual(['requests.0.authority', 'requests.2.authority'])
  })

  test.each([
    [0, 'too_small'],
    [51, 'too_large'],
  ])('%i requests', async (count, issue) => {
    const { status, body } = await score(Array(count).fill(request))
    expect([status, body.error.details.fields]).toMatchObject([422, [{ name: 'requests', issue }]])
  })
})

test('50 requests of browsers fit into a body', async () => {
  const cookie = ['x-long', 'y'.repeat(8000)]
  const { status, body } = await score(
    Array(50).fill({ ...byChrome, headers: [...byChrome.headers, cookie] }),
  )
  expect([status, body.data.length]).toEqual([200, 50])
})

test('other requests are answered between items that take long', async () => {
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
  const { status } = await score(Array(10).fill({ ...request, headers }))
  isScoring = false
  findTrusted = () => null
  expect(status).toBe(200)
  expect(turnsOfItems).toHaveLength(10)
  expect(new Set(turnsOfItems).size).toBe(10)
})

test('of a user agent 1,024 characters are read', async () => {
  const headers = (name: string) => [['User-Agent', `${'x'.repeat(1020)} ${name}`]]
  const { body } = await score([
    { ...request, headers: headers('HeadlessChrome') },
    { ...request, headers: [['User-Agent', `HeadlessChrome ${'x'.repeat(9000)}`]] },
  ])
  expect(body.data).toMatchObject([
    { reasons: ['bot_like_user_agent'] },
    { reasons: ['headless_user_agent', 'bot_like_user_agent'] },
  ])
})

test('hosts of other organizations and of another environment are foreign', async () => {
  const other = await world.organization()
  expect((await score([request], other.key)).status).toBe(422)
  const testKey = await world.issue({
    organizationId,
    type: 'secret',
    environment: 'test',
    scopes: ['requests:score'],
  })
  expect((await score([request], testKey.revealedKey)).status).toBe(422)
})

test('an origin counts within 15 seconds of a new key, and until that is revoked', async () => {
  const other = await world.organization()
  expect((await score([request], other.key)).status).toBe(422)
  const origins = ['https://shop.example']
  const body = { name: 'Page', type: 'publishable', environment: 'live', allowed_origins: origins }
  const made = await world.send({
    method: 'POST',
    url: `${other.path}/api-keys`,
    key: other.key,
    body,
  })
  expect(made.status).toBe(201)
  world.now.ms += 15_000
  expect((await score([request], other.key)).status).toBe(200)
  const keyUrl = `${other.path}/api-keys/${made.body.data.id}`
  expect((await world.send({ method: 'DELETE', url: keyUrl, key: other.key })).status).toBe(200)
  expect((await score([request], other.key)).status).toBe(422)
})

test('it needs its own scope', async () => {
  const narrow = await world.issue({ organizationId, type: 'secret', scopes: ['sessions:read'] })
  const { status, body } = await score([request], narrow.revealedKey)
  expect([status, body.error.message]).toEqual([403, expect.stringContaining('requests:score')])
})

test('each request costs a unit of a bucket that other calls leave alone', async () => {
  const other = await world.organization()
  await world.issue({
    organizationId: other.organizationId,
    type: 'publishable',
    allowed_origins: ['https://shop.example'],
  })
  const fifty = Array(50).fill(request)
  const first = await score(fifty, other.key)
  expect(first.headers).toMatchObject({
    'x-ratelimit-limit': '12000',
    'x-ratelimit-remaining': '11950',
    'x-ratelimit-cost': '50',
  })
  const id = asId('org', other.organizationId)
  await limiter.consume({ owner: id, bucket: 'requests', limit: 12_000, cost: 11_901 })
  const refused = await score(fifty, other.key)
  expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limit.exceeded'])
  const elsewhere = await world.send({ url: other.path, key: other.key })
  expect(elsewhere.status).toBe(200)
  expect(elsewhere.headers).toMatchObject({
    'x-ratelimit-limit': '600',
    'x-ratelimit-remaining': '599',
  })
})

test('what is refused for its body costs what it has', async () => {
  const costs = [[], [1, 2, 3], Array(51).fill(request)].map(async (requests) => {
    const { headers } = await score(requests)
    return headers['x-ratelimit-cost']
  })
  expect(await Promise.all(costs)).toEqual(['1', '3', '50'])
})

test('counts stay, by verdict and agent, and nothing else does', async () => {
  const before = await countsOf()
  await score([request, byChrome, byChrome])
  const after = await countsOf()
  const more = Object.keys(after).filter((name) => after[name] !== before[name])
  expect(more.map((name) => [name, (after[name] ?? 0) - (before[name] ?? 0)])).toEqual([
    ['bot none', 1],
    ['inconclusive none', 2],
  ])
  expect(Object.keys(after)).toHaveLength(10)
})

async function countsOf(): Promise<Record<string, number>> {
  const metric = await registry.getSingleMetric('tidegate_requests_scored_total')?.get()
  return Object.fromEntries(
    (metric?.values ?? []).map(({ labels, value }) => [`${labels.verdict} ${labels.agent}`, value]),
  )
}
