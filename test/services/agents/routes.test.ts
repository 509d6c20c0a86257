import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import nodePath from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { readAddresses } from '../../../infra/ip/data/read.ts'
import { noNetwork, openNetwork } from '../../../infra/ip/network.ts'
import { operatorCatalogue } from '../../../infra/ip/operators.ts'
import { rotationDecision } from '../../../services/agents/schemas.ts'
import { writeMmdb } from '../../support/mmdb.ts'
import { now, path, startAgents } from './agents-app.ts'

const item = { ip: '8.8.8.8', proxy_provider: 'BYTEFUL', desired_country_code: 'DE' }
const items = (count: number) => Array.from({ length: count }, () => item)

let folder = ''
let paths: Record<'cityPath' | 'asnPath' | 'anonymousPath', string>
let ipv4OnlyPath = ''
let agents: Awaited<ReturnType<typeof startAgents>>

beforeAll(async () => {
  folder = await mkdtemp(nodePath.join(tmpdir(), 'tidegate-agents-'))
  const file = (name: string) => nodePath.join(folder, `${name}.mmdb`)
  paths = { cityPath: file('city'), asnPath: file('asn'), anonymousPath: file('anonymous') }
  const { cityPath, asnPath, anonymousPath } = paths
  ipv4OnlyPath = file('ipv4')
  await writeMmdb(cityPath, 'City', {
    '8.8.0.0/16': { country: { iso_code: 'DE', names: { en: 'Germany' } } },
    '9.9.9.0/24': { country_code: 'FR' },
    '11.0.0.0/8': { country: { iso_code: 'DE' } },
    '2a00:1450::/32': { country_code: 'IE' },
  })
  const example = { autonomous_system_number: 64512, autonomous_system_organization: 'Example' }
  await writeMmdb(asnPath, 'ASN', {
    '8.0.0.0/8': example,
    '9.9.9.0/24': { autonomous_system_number: 36183 },
    '12.0.0.0/8': example,
    '2a00:1450::/32': example,
  })
  const ofHosting = { '8.8.4.0/24': { is_hosting_provider: true } }
  await writeMmdb(ipv4OnlyPath, 'Anonymous-IP', ofHosting)
  await writeMmdb(anonymousPath, 'Anonymous-IP', {
    ...ofHosting,
    '2001:4860::/32': { is_hosting_provider: true },
  })
  agents = await startAgents(await openNetwork({ cityPath, asnPath, anonymousPath }))
})

afterAll(async () => {
  await agents.app.close()
  await rm(folder, { recursive: true, force: true })
})

describe('POST /v1/agents/ip-rotation', () => {
  it('answers each item in the order of the request, addresses as they were sent', async () => {
    const { status, body } = await agents.post({
      items: [
        { ip: '9.9.9.9', proxy_provider: 'PINGPROXIES', desired_country_code: 'DE' },
        { ip: '8.8.8.8', proxy_provider: 'BYTEFUL', desired_country_code: 'DE' },
        { ip: '2A00:1450:0::1', proxy_provider: 'OPENAI_GPTBOT', desired_country_code: 'IE' },
        { ip: '8.8.4.4', proxy_provider: 'BYTEFUL_DATA', desired_country_code: 'DE' },
        { ip: '8.8.8.8', proxy_provider: 'BYTEFUL', desired_country_code: 'AT' },
      ],
    })
    expect(status).toBe(200)
    expect(body.meta.request_id).toMatch(/^req_/)
    const data = z.array(rotationDecision).parse(body.data)
    expect(data.map(({ ip, decision, reasons }) => [ip, decision, reasons])).toEqual([
      ['9.9.9.9', 'rotate', ['country_mismatch', 'provider_mismatch']],
      ['8.8.8.8', 'keep', []],
      ['2A00:1450:0::1', 'keep', []],
      ['8.8.4.4', 'rotate', ['hosting']],
      ['8.8.8.8', 'rotate', ['country_mismatch']],
    ])
    expect(data.map((decision) => decision.proxy_provider_brand)).toEqual([
      'BYTEFUL',
      'BYTEFUL',
      'OPENAI',
      'BYTEFUL',
      'BYTEFUL',
    ])
    expect(data[0]).toMatchObject({
      proxy_provider_category: 'residential_proxy',
      desired_country_code: 'DE',
      observed_country_code: 'FR',
      evaluated_at: new Date(now).toISOString(),
    })
  })

  it.each<[string, unknown, string, string]>([
    ['no object', [], 'body', 'invalid_type'],
    ['no items', {}, 'items', 'required'],
    ['items that are no list', { items: item }, 'items', 'invalid_type'],
    ['an empty batch', { items: [] }, 'items', 'too_small'],
    ['eleven items', { items: items(11) }, 'items', 'too_large'],
    ['a member too many', { items: items(1), dry_run: true }, 'dry_run', 'not_allowed'],
    ['an item that is no object', { items: [item, 'x'] }, 'items.1', 'invalid_type'],
    [
      'a member too many in an item',
      { items: [{ ...item, note: 'x' }] },
      'items.0.note',
      'not_allowed',
    ],
    ['no ip', { items: [{ ...item, ip: undefined }] }, 'items.0.ip', 'required'],
    [
      'no provider',
      { items: [{ ...item, proxy_provider: undefined }] },
      'items.0.proxy_provider',
      'required',
    ],
    [
      'no country',
      { items: [{ ...item, desired_country_code: undefined }] },
      'items.0.desired_country_code',
      'required',
    ],
    ['an ip that is a number', { items: [{ ...item, ip: 8 }] }, 'items.0.ip', 'invalid_type'],
    ['a private ip', { items: [item, item, { ...item, ip: '10.0.0.1' }] }, 'items.2.ip', 'invalid'],
    ['a documentation ip', { items: [{ ...item, ip: '2001:db8::1' }] }, 'items.0.ip', 'invalid'],
    ['text for an ip', { items: [{ ...item, ip: 'localhost' }] }, 'items.0.ip', 'invalid'],
    [
      'a lower-case country',
      { items: [{ ...item, desired_country_code: 'de' }] },
      'items.0.desired_country_code',
      'invalid',
    ],
    [
      'the country XX',
      { items: [{ ...item, desired_country_code: 'XX' }] },
      'items.0.desired_country_code',
      'invalid',
    ],
    [
      'the country UK',
      { items: [{ ...item, desired_country_code: 'UK' }] },
      'items.0.desired_country_code',
      'invalid',
    ],
    [
      'a three-letter country',
      { items: [{ ...item, desired_country_code: 'DEU' }] },
      'items.0.desired_country_code',
      'invalid',
    ],
    [
      'an unknown provider',
      { items: [item, { ...item, proxy_provider: 'X' }] },
      'items.1.proxy_provider',
      'invalid_value',
    ],
  ])('refuses %s', async (_, body, name, issue) => {
    const answer = await agents.post(body, { as: agents.key() })
    expect(answer.status).toBe(422)
    const { code, details } = answer.body.error
    expect(code).toBe('request.validation_failed')
    expect(details.parameter_set).toBe('agent_ip_rotation')
    expect(details.fields).toEqual([expect.objectContaining({ name, issue })])
  })

  it('names the ten nearest tags for an unknown one', async () => {
    const body = { items: [{ ...item, proxy_provider: 'BYTEFUL_MOBILE' }] }
    const { details } = (await agents.post(body)).body.error
    expect(details.allowed_values).toHaveLength(10)
    expect(details.allowed_values[0]).toBe('BYTEFUL')
  })

  it('names every invalid field at once, and repeats no value', async () => {
    const bad = { ip: '10.1.2.3', proxy_provider: 'SECRETIVE', desired_country_code: 'ZZ' }
    const { body } = await agents.post({ items: [bad, bad] })
    const names = body.error.details.fields.map((field: { name: string }) => field.name)
    const members = ['ip', 'proxy_provider', 'desired_country_code']
    expect(names.sort()).toEqual(
      [0, 1].flatMap((i) => members.map((each) => `items.${i}.${each}`)).sort(),
    )
    expect(JSON.stringify(body)).not.toMatch(/10\.1\.2\.3|SECRETIVE|ZZ/)
  })

  it('refuses thousands of unknown tags without looking for each one’s neighbours', async () => {
    const many = Array.from({ length: 2500 }, () => ({ ...item, proxy_provider: 'X' }))
    const { status, body } = await agents.post({ items: many }, { as: agents.key() })
    expect(status).toBe(422)
    expect(body.error.details.fields).toEqual([
      expect.objectContaining({ name: 'items', issue: 'too_large' }),
    ])
  })
})

describe('an organization without the capability', () => {
  it.each<[string, unknown, { text?: string; type?: string }]>([
    ['a valid batch', { items: [item] }, {}],
    ['an invalid batch', { items: 7 }, {}],
    ['no JSON', null, { text: '{' }],
    ['another content type', null, { text: 'x', type: 'text/plain' }],
  ])('gets 404 for %s, and pays for it', async (_, body, post) => {
    const as = agents.key({ capabilities: ['another'] })
    const answer = await agents.post(body, { as, ...post })
    expect(answer).toMatchObject({
      status: 404,
      cost: '1',
      body: { error: { code: 'request.not_found' } },
    })
  })

  it('gets 403 first when the key lacks the scope', async () => {
    const as = agents.key({ capabilities: [], scopes: ['sessions:read'] })
    const { status, body } = await agents.post({ items: [item] }, { as })
    expect(status).toBe(403)
    expect(body.error.code).toBe('auth.insufficient_scope')
    expect(body.error.message).toContain('agents:ip_rotation')
  })
})

describe('what a batch costs', () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])('%i items: as many units', async (count) => {
    expect(await agents.post({ items: items(count) }, { as: agents.key() })).toMatchObject({
      status: 200,
      cost: String(count),
    })
  })

  it.each<[string, unknown, string]>([
    ['no items', { items: [] }, '1'],
    ['eleven', { items: items(11) }, '10'],
    ['items that are no list', { items: 'many' }, '1'],
    ['three that are invalid', { items: [1, 2, 3] }, '3'],
    ['null', null, '1'],
  ])('%s', async (_, body, cost) => {
    expect(await agents.post(body, { as: agents.key() })).toMatchObject({ status: 422, cost })
  })

  it('one unit for what is no JSON', async () => {
    expect(await agents.post(null, { text: '{"items":[1,2', as: agents.key() })).toMatchObject({
      status: 400,
      cost: '1',
    })
  })

  it('is refused once the units are gone, and says its cost and when to come back', async () => {
    const as = agents.key({ rateLimit: 12 })
    const first = await agents.post({ items: items(10) }, { as })
    expect(first.headers).toMatchObject({ 'x-ratelimit-limit': '12', 'x-ratelimit-remaining': '2' })
    const second = await agents.post({ items: items(10) }, { as })
    expect(second).toMatchObject({ status: 429, cost: '10' })
    expect(Number(second.headers['retry-after'])).toBeGreaterThanOrEqual(1)
  })
})

describe('without enough IP data', () => {
  it.each([
    ['no country', '12.0.0.1', 'items.1.ip'],
    ['no network', '11.0.0.1', 'items.1.ip'],
    ['neither', '13.0.0.1', 'items.1.ip'],
  ])('the whole batch is 503 when one address has %s', async (_, ip, name) => {
    const { status, headers, body, cost } = await agents.post({
      items: [item, { ...item, ip }, item],
    })
    expect({ status, cost }).toEqual({ status: 503, cost: '3' })
    expect(body.error).toMatchObject({ code: 'service.unavailable', retryable: true })
    expect(body.error.message).toContain(name)
    expect(headers['retry-after']).toBe('60')
  })

  it('an invalid item counts before missing data', async () => {
    const unknown = { ...item, ip: '13.0.0.1' }
    const { status } = await agents.post({
      items: [unknown, { ...item, desired_country_code: 'XX' }],
    })
    expect(status).toBe(422)
  })

  it('a database of IPv4 networks leaves an IPv6 address unknown, although its flags would be false', async () => {
    const { app, post } = await startAgents(
      await openNetwork({ ...paths, anonymousPath: ipv4OnlyPath }),
    )
    const ipv6 = { ip: '2a00:1450::1', proxy_provider: 'BYTEFUL', desired_country_code: 'IE' }
    const { status, body } = await post({ items: [item, ipv6] })
    expect([status, body.error.retryable]).toEqual([503, true])
    expect(body.error.message).toContain('items.1.ip')
    expect((await post({ items: [item] })).status).toBe(200)
    await app.close()
  })

  it('all is 503 while a database fails', async () => {
    const lookup = (ip: string) => ({ ...noNetwork.lookup(ip, 0), status: 'error' as const })
    const { app, post } = await startAgents({ ...noNetwork, lookup, missing: [] })
    const { status, headers, body } = await post({ items: [item] })
    expect([status, body.error.code, body.error.retryable]).toEqual([
      503,
      'service.unavailable',
      true,
    ])
    expect(headers['retry-after']).toBe('60')
    await app.close()
  })
})

describe('with the file of addresses that comes along', () => {
  let shipped: Awaited<ReturnType<typeof startAgents>>
  beforeAll(async () => {
    const addresses = await readAddresses()
    shipped = await startAgents(await openNetwork({ addresses: () => addresses }))
  })
  afterAll(() => shipped.app.close())

  const home = ['91.64.0.1', 'DE'] as const
  const cloud = ['5.9.0.1', 'DE'] as const
  const tor = ['185.220.101.1', 'DE'] as const
  const ofMullvad = ['23.144.160.67', 'US'] as const
  const ofProton = ['146.70.51.210', 'US'] as const
  const ofGoogleDns = ['8.8.8.8', 'US'] as const
  const ofGptBot = ['20.171.206.1', 'US'] as const

  it.each<[string, readonly [string, string], string[], boolean]>([
    ['BYTEFUL', home, [], false],
    ['BYTEFUL', cloud, ['hosting'], false],
    ['BYTEFUL', tor, ['listed'], false],
    ['BYTEFUL', ofMullvad, ['provider_mismatch'], true],
    ['MULLVAD', ofMullvad, [], true],
    ['MULLVAD', ofProton, ['provider_mismatch'], true],
    ['PROTON_VPN', ofProton, [], true],
    ['NORDVPN', ofMullvad, ['provider_mismatch'], true],
    ['NORDVPN', cloud, [], false],
    ['ICLOUD', ['104.28.32.1', 'BS'], [], true],
    ['OPENAI_GPTBOT', ofGptBot, [], true],
    ['OPENAI', ofGoogleDns, [], false],
    ['BING', ofGoogleDns, ['provider_mismatch'], true],
    ['GOOGLE', ofGptBot, ['provider_mismatch'], true],
    ['ZSCALER', ['165.225.1.1', 'US'], [], true],
  ])('%s at %j: %j, checked: %j', async (proxy_provider, [ip, country], reasons, checked) => {
    const { status, body } = await shipped.post({
      items: [{ ip, proxy_provider, desired_country_code: country }],
    })
    const decision = reasons.length > 0 ? 'rotate' : 'keep'
    expect([status, body.data]).toMatchObject([
      200,
      [{ decision, reasons, provider_checked: checked }],
    ])
  })

  it('every operator of the catalogue is answered, and those with complete lists are checked', async () => {
    const answers = await Promise.all(
      operatorCatalogue.operators.map(({ tag }) =>
        shipped.post({ items: [{ ip: home[0], proxy_provider: tag, desired_country_code: 'DE' }] }),
      ),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const checked = answers.flatMap(({ body }) => body.data).filter((one) => one.provider_checked)
    const withLists = ['APPLEBOT', 'BING', 'COMMON_CRAWL', 'ICLOUD']
    expect(checked).toMatchObject(
      withLists.map((tag) => ({
        proxy_provider_brand: tag,
        reasons: expect.arrayContaining(['provider_mismatch']),
      })),
    )
  })

  it('an address that the file does not know is 503', async () => {
    const { status, body } = await shipped.post({ items: [item, { ...item, ip: '6.0.0.1' }] })
    expect([status, body.error.retryable]).toEqual([503, true])
    expect(body.error.message).toContain('items.1.ip')
    expect(shipped.described.problems).toEqual([])
  })
})

describe('where a database is missing', () => {
  const hosting = { ip: '8.8.4.4', proxy_provider: 'BYTEFUL', desired_country_code: 'DE' }

  it.each([
    ['all of them', [], ['CITY_MMDB', 'ASN_MMDB', 'ANONYMOUS_MMDB']],
    ['all but that of countries', ['cityPath'], ['ASN_MMDB', 'ANONYMOUS_MMDB']],
    ['all but that of networks', ['asnPath'], ['CITY_MMDB', 'ANONYMOUS_MMDB']],
    ['that of anonymous addresses', ['cityPath', 'asnPath'], ['ANONYMOUS_MMDB']],
    ['that of networks', ['cityPath', 'anonymousPath'], ['ASN_MMDB']],
  ] as const)(
    '(%s), nothing is kept unseen: 503, and the operator is told',
    async (_, has, missing) => {
      const some = Object.fromEntries(has.map((name) => [name, paths[name]]))
      const { app, post, logged, described } = await startAgents(await openNetwork(some))
      const atStart = logged.splice(0)
      const { status, headers, body } = await post({ items: [hosting] })
      expect(status).toBe(503)
      expect(body.error).toMatchObject({ code: 'service.unavailable', retryable: false })
      expect(headers).not.toHaveProperty('retry-after')
      for (const lines of [atStart, logged]) {
        expect(lines).toHaveLength(1)
        expect(lines[0]).toContain(`IP rotation needs an IP database for ${missing.join(', ')}`)
      }
      expect(described.problems).toEqual([])
      await app.close()
    },
  )

  it('an operator with all of them is told nothing', async () => {
    const { app, logged } = await startAgents(await openNetwork(paths))
    expect(logged).toEqual([])
    await app.close()
  })
})

it('is described with its limits', async () => {
  const description = (await agents.app.inject('/openapi.json')).json()
  const { post } = description.paths[path]
  expect(post.operationId).toBe('checkAgentIpRotation')
  const schema = post.requestBody.content['application/json'].schema
  expect(schema.properties.items).toMatchObject({ minItems: 1, maxItems: 10 })
  expect(Object.keys(post.responses)).toEqual(
    expect.arrayContaining(['200', '401', '403', '404', '422', '429', '503']),
  )
})
