import { afterAll, describe, expect, it, vi } from 'vitest'
import { readAddresses } from '../../../infra/ip/data/read.ts'
import { noNetwork, openNetwork } from '../../../infra/ip/network.ts'
import { operatorCatalogue } from '../../../infra/ip/operators.ts'
import { changeOrganization } from '../../../services/organizations/commands.ts'
import { decideCapability } from '../../../services/organizations/decide-organization.ts'
import { type Api, startApi } from '../../support/api.ts'
import { silent } from '../../support/projections.ts'

const item = { ip: '91.64.0.1', proxy_provider: 'BYTEFUL', desired_country_code: 'DE' }
const items = (count: number) => Array.from({ length: count }, () => item)
const one = (changes: object) => ({ items: [item, { ...item, ...changes }] })

/** Returns a key of an organization with the capability. */
async function enabledKey({ deps, organization }: Api): Promise<string> {
  const { organizationId, key } = await organization()
  await changeOrganization(deps, organizationId, (before, change) =>
    decideCapability(before, { capability: 'ip_rotation', enabled: true, ...change }),
  )
  return key
}

const addresses = await readAddresses()
/** Bundled address file. */
const network = await openNetwork({ addresses: () => addresses })
const api = await startApi({ network, roles: ['api'] })
const key = await enabledKey(api)
afterAll(() => api.stop())

/** Sends `payload` unchanged, or else `body` as JSON. */
async function post(body: unknown, { by = key, to = api, ...as }: Post = {}) {
  const url = '/v1/agents/ip-rotation'
  const response = await to.send({ method: 'POST', url, key: by, body, ...as })
  return { ...response, cost: response.headers['x-ratelimit-cost'] }
}

interface Post {
  by?: string
  to?: Api
  payload?: string
  headers?: Record<string, string>
}

describe('POST /v1/agents/ip-rotation', () => {
  it('returns the items in the order of the request, with addresses as sent', async () => {
    const asked = [
      { ...item, proxy_provider: 'BYTEFUL_DATA', ip: '2A01:04F8:0::1' },
      item,
      { ...item, desired_country_code: 'AT' },
    ]
    const { status, body } = await post({ items: asked })
    const brand = { proxy_provider_brand: 'BYTEFUL' }
    expect([status, body.data]).toMatchObject([
      200,
      [
        { ...brand, ip: '2A01:04F8:0::1', decision: 'rotate', reasons: ['hosting'] },
        { ...brand, ip: item.ip, decision: 'keep', reasons: [] },
        { ...brand, decision: 'rotate', reasons: ['country_mismatch'] },
      ],
    ])
  })

  it.each<[string, unknown, string, string]>([
    ['an array as the body', [], 'body', 'invalid_type'],
    ['no items', {}, 'items', 'required'],
    ['items that are not an array', { items: item }, 'items', 'invalid_type'],
    ['an empty batch', { items: [] }, 'items', 'too_small'],
    ['eleven items', { items: items(11) }, 'items', 'too_large'],
    ['an unknown member', { items: items(1), dry_run: true }, 'dry_run', 'not_allowed'],
    ['an item that is not an object', { items: [item, 'x'] }, 'items.1', 'invalid_type'],
    ['an unknown member of an item', one({ note: 'x' }), 'items.1.note', 'not_allowed'],
    ['no ip', one({ ip: undefined }), 'items.1.ip', 'required'],
    ['no provider', one({ proxy_provider: undefined }), 'items.1.proxy_provider', 'required'],
    ['a private ip', one({ ip: '10.0.0.1' }), 'items.1.ip', 'invalid'],
    ['a documentation ip', one({ ip: '2001:db8::1' }), 'items.1.ip', 'invalid'],
    ['a host name as ip', one({ ip: 'localhost' }), 'items.1.ip', 'invalid'],
    [
      'an unassigned country',
      one({ desired_country_code: 'XX' }),
      'items.1.desired_country_code',
      'invalid',
    ],
  ])('rejects %s', async (_, body, name, issue) => {
    const { status, body: response } = await post(body)
    expect([status, response.error.details]).toMatchObject([
      422,
      { parameter_set: 'agent_ip_rotation', fields: [{ name, issue }] },
    ])
  })

  it('suggests the ten nearest tags for an unknown one', async () => {
    const { details } = (await post(one({ proxy_provider: 'BYTEFUL_MOBILE' }))).body.error
    expect(details.allowed_values).toHaveLength(10)
    expect(details.allowed_values[0]).toBe('BYTEFUL')
  })

  it('does not repeat values of invalid fields', async () => {
    const bad = { ip: '10.1.2.3', proxy_provider: 'SECRETIVE', desired_country_code: 'ZZ' }
    const { body } = await post(one(bad))
    expect(body.error.details.fields).toHaveLength(3)
    expect(JSON.stringify(body)).not.toMatch(/10\.1\.2\.3|SECRETIVE|ZZ/)
  })

  it('rejects thousands of unknown tags without computing suggestions', async () => {
    const many = Array.from({ length: 2500 }, () => ({ ...item, proxy_provider: 'X' }))
    const { status, body } = await post({ items: many })
    expect([status, body.error.details.fields]).toMatchObject([
      422,
      [{ name: 'items', issue: 'too_large' }],
    ])
  })
})

it.each<[string, unknown, Post]>([
  ['a valid batch', { items: [item] }, {}],
  ['an invalid batch', { items: 7 }, {}],
  ['malformed JSON', undefined, { payload: '{' }],
  ['another content type', undefined, { payload: 'x', headers: { 'content-type': 'text/plain' } }],
])(
  'an organization without the capability gets 404 for %s, and is charged',
  async (_, body, as) => {
    const { key: by } = await api.organization()
    expect(await post(body, { by, ...as })).toMatchObject({ status: 404, cost: '1' })
  },
)

it('a key without the scope gets 403, even if the organization lacks the capability', async () => {
  const { organizationId } = await api.organization()
  const { revealedKey: by } = await api.issue({ organizationId, scopes: ['sessions:read'] })
  expect(await post({ items: [item] }, { by })).toMatchObject({ status: 403, cost: '1' })
})

it.each<[string, unknown, number, string]>([
  ['an item', { items: items(1) }, 200, '1'],
  ['two items', { items: items(2) }, 200, '2'],
  ['ten items', { items: items(10) }, 200, '10'],
  ['no items', { items: [] }, 422, '1'],
  ['eleven items', { items: items(11) }, 422, '10'],
  ['items that are not an array', { items: 'many' }, 422, '1'],
  ['three invalid items', { items: [1, 2, 3] }, 422, '3'],
  ['null', null, 422, '1'],
])('a batch with %s costs one unit per item, but 1 to 10', async (_, body, status, cost) => {
  expect(await post(body)).toMatchObject({ status, cost })
})

describe('without enough IP data', () => {
  const unknown = one({ ip: '6.0.0.1' })

  it('the whole batch gets 503, naming the address', async () => {
    const { status, cost, headers, body } = await post(unknown)
    expect([status, cost, headers['retry-after']]).toEqual([503, '2', '60'])
    expect(body.error).toMatchObject({ code: 'service.unavailable', retryable: true })
    expect(body.error.message).toContain('items.1.ip')
  })

  it.each([
    ['country', 'location'],
    ['network', 'routing'],
  ] as const)('the whole batch gets 503 if only the %s is unknown', async (_, part) => {
    const known = network.lookup(item.ip, 0)
    const partly = { ...known, [part]: noNetwork.lookup(item.ip, 0)[part] }
    const lookup = vi.spyOn(network, 'lookup')
    lookup.mockImplementation((ip) => (ip === item.ip ? known : partly))
    const { status, body } = await post(unknown)
    lookup.mockRestore()
    expect([status, body.error.message]).toEqual([503, expect.stringContaining('items.1.ip')])
  })

  it('an invalid item gets 422 before missing data gets 503', async () => {
    const invalid = { ...item, desired_country_code: 'XX' }
    expect((await post({ items: [...unknown.items, invalid] })).status).toBe(422)
  })

  it('every batch gets 503 while a database fails', async () => {
    const lookup = vi.spyOn(network, 'lookup')
    lookup.mockImplementation((ip) => ({ ...noNetwork.lookup(ip, 0), status: 'error' }))
    const { status, headers, body } = await post({ items: [item] })
    lookup.mockRestore()
    expect([status, headers['retry-after'], body.error.retryable]).toEqual([503, '60', true])
  })

  it('every batch gets 503 while a database is missing, and a warning is logged', async () => {
    const warn = vi.spyOn(silent, 'warn')
    const without = await startApi({ network: { ...noNetwork, missing: ['ASN_MMDB'] } })
    expect(warn.mock.calls.flat()).toContainEqual(
      expect.stringContaining('IP rotation needs an IP database for ASN_MMDB'),
    )
    warn.mockRestore()
    const response = await post({ items: [item] }, { to: without, by: await enabledKey(without) })
    expect(response).toMatchObject({ status: 503, body: { error: { retryable: false } } })
    expect(response.headers).not.toHaveProperty('retry-after')
    await without.stop()
  })
})

describe('with the bundled address file', () => {
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
    ['NORDVPN', cloud, [], false],
    ['ICLOUD', ['104.28.32.1', 'BS'], [], true],
    ['OPENAI_GPTBOT', ofGptBot, [], true],
    ['BING', ofGoogleDns, ['provider_mismatch'], true],
    ['GOOGLE', ofGptBot, ['provider_mismatch'], true],
    ['ZSCALER', ['165.225.1.1', 'US'], [], true],
  ])('%s at %j: %j, checked: %j', async (proxy_provider, [ip, country], reasons, checked) => {
    const { body } = await post({ items: [{ ip, proxy_provider, desired_country_code: country }] })
    expect(body.data).toMatchObject([{ reasons, provider_checked: checked }])
  })

  it('accepts every operator of the catalogue, and checks those with complete lists', async () => {
    const responses = await Promise.all(
      operatorCatalogue.operators.map(({ tag }) =>
        post({ items: [{ ...item, proxy_provider: tag }] }),
      ),
    )
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
    const checked = responses.flatMap(({ body }) => body.data).filter((one) => one.provider_checked)
    expect(checked).toMatchObject(
      ['APPLEBOT', 'BING', 'COMMON_CRAWL', 'ICLOUD'].map((tag) => ({
        proxy_provider_brand: tag,
        reasons: expect.arrayContaining(['provider_mismatch']),
      })),
    )
  })
})
