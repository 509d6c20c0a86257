import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bearer } from '../authorization/credential.ts'
import { startWorld, type World } from '../authorization/world.ts'
import { call } from './provoke.ts'

let world: World
let key: Record<string, string>
let organizationId: string
let endpointId: string

beforeAll(async () => {
  world = await startWorld()
  organizationId = await world.organization('members')
  key = bearer((await world.issue({ organizationId, type: 'secret', scopes: ['*'] })).revealedKey)
  endpointId = (await world.webhook(organizationId)).endpointId
})
afterAll(() => world.stop())

interface Case {
  what: string
  method: 'POST' | 'PATCH'
  url: () => string
  body: object
  names: string[]
}

const own = (rest: string) => () => `/v1/organizations/${organizationId}${rest}`
const variable = (key: string) => ({ name: 'Key', key, secret: true })
const minimalService = {
  id: 'members-service',
  name: 'Members',
  description: 'For tests.',
  website: 'https://acme.example',
  webhook_endpoint_id: `we_${'0'.repeat(32)}`,
}

const cases: Case[] = [
  {
    what: 'a new organization',
    method: 'POST',
    url: () => '/v1/organizations',
    body: { name: ' ', slug: 'A B', plan: 1 },
    names: ['name', 'plan', 'slug'],
  },
  {
    what: 'an organization',
    method: 'PATCH',
    url: own(''),
    body: { name: ' ', status: 'gone' },
    names: ['name', 'status'],
  },
  {
    what: 'a new key, by rules alone',
    method: 'POST',
    url: own('/api-keys'),
    body: {
      name: ' ',
      type: 'publishable',
      scopes: ['*'],
      allowed_origins: ['x', 'https://a.example', 'y'],
    },
    names: ['allowed_origins.0', 'allowed_origins.2', 'name', 'scopes'],
  },
  {
    what: 'a new secret key',
    method: 'POST',
    url: own('/api-keys'),
    body: { name: 'k', type: 'secret', client_target: 'browser', allowed_origins: [] },
    names: ['allowed_origins', 'client_target', 'scopes'],
  },
  {
    what: 'a new key, by schema and rules',
    method: 'POST',
    url: own('/api-keys'),
    body: { name: ' ', rate_limit: 1, allowed_origins: ['x'] },
    names: ['allowed_origins.0', 'name', 'rate_limit'],
  },
  {
    what: 'a new webhook endpoint',
    method: 'POST',
    url: own('/webhooks/endpoints'),
    body: { name: ' ', url: 'http://127.0.0.1/', event_types: [] },
    names: ['event_types', 'name', 'url'],
  },
  {
    what: 'a webhook endpoint',
    method: 'PATCH',
    url: () => own(`/webhooks/endpoints/${endpointId}`)(),
    body: { name: ' ', url: 'x', status: 'gone' },
    names: ['name', 'status', 'url'],
  },
  {
    what: 'a new service',
    method: 'POST',
    url: () => '/v1/gate/services',
    body: {
      ...minimalService,
      id: 'gate',
      name: 'Tidegate',
      website: 'ftp://x',
      discoverable: 'yes',
      docs_url: 'x',
      env_vars: [variable('PATH'), variable('1'), variable('A'), variable('a')],
      sdks: [{ label: '', install: '', url: 'x' }],
      branding: { primary_color: 'red', logo_url: 'x' },
      consent: { terms_url: 'x' },
      verified: true,
    },
    names: [
      'branding.logo_url',
      'branding.primary_color',
      'consent.terms_url',
      'discoverable',
      'docs_url',
      'env_vars.0.key',
      'env_vars.1.key',
      'env_vars.3.key',
      'id',
      'name',
      'sdks.0.install',
      'sdks.0.label',
      'sdks.0.url',
      'verified',
      'website',
    ],
  },
  {
    what: 'a signup',
    method: 'POST',
    url: () => '/v1/gate/sessions',
    body: {
      service_id: 5,
      account_name: '\n',
      metadata: { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6 },
      delivery: {
        version: 1,
        algorithm: 'x25519-hkdf-sha256/aes-256-gcm',
        key_id: 'A'.repeat(43),
        public_key: 'A'.repeat(43),
      },
    },
    names: ['account_name', 'delivery.public_key', 'metadata', 'service_id'],
  },
  {
    what: 'a collect session',
    method: 'POST',
    url: () => '/v2/collect/sessions',
    body: { clientPublicKey: 5, sdk: { name: 'n', version: '1', platform: 'web' } },
    names: ['clientPublicKey', 'page'],
  },
  {
    what: 'a collect session that is none',
    method: 'POST',
    url: () => '/v2/collect/sessions',
    body: [],
    names: ['body'],
  },
  {
    what: 'a collect session of a nameless SDK',
    method: 'POST',
    url: () => '/v2/collect/sessions',
    body: {
      clientPublicKey: 'A'.repeat(43),
      sdk: { name: '\u0007', version: '1', platform: 'web' },
    },
    names: ['sdk.name'],
  },
  {
    what: 'an IP rotation',
    method: 'POST',
    url: () => '/v1/agents/ip-rotation',
    body: { items: [{ ip: 5, proxy_provider: 'NOBODY', desired_country_code: 'xx' }] },
    names: ['items.0.desired_country_code', 'items.0.ip', 'items.0.proxy_provider'],
  },
]

describe('all members that do not fit are named at once', () => {
  test.each(cases)('in $what', async ({ method, url, body, names }) => {
    const publishable = await world.issue({ organizationId, type: 'publishable' })
    const headers = url().startsWith('/v2/') ? bearer(publishable.revealedKey) : key
    const answer = await call(world.app, { method, url: url(), body, headers })
    const { error } = JSON.parse(answer.body)
    expect(answer.status).toBe(422)
    const named: string[] = error.details.fields.map((field: { name: string }) => field.name)
    expect(named.toSorted()).toEqual(names)
  })
})
