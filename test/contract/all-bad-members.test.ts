import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sendExample } from '../authorization/call.ts'
import { bearer } from '../authorization/credential.ts'
import { startWorld, type World } from '../authorization/world.ts'

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

const own = (rest: string) => () => `/v1/organizations/${organizationId}${rest}`
const variable = (key: string) => ({ name: 'Key', key, secret: true })
const service = {
  id: 'gate',
  name: 'Tidegate',
  description: 'For tests.',
  website: 'ftp://x',
  webhook_endpoint_id: `we_${'0'.repeat(32)}`,
  discoverable: 'yes',
  docs_url: 'x',
  env_vars: [variable('PATH'), variable('1'), variable('A'), variable('a')],
  sdks: [{ label: '', install: '', url: 'x' }],
  branding: { primary_color: 'red', logo_url: 'x' },
  consent: { terms_url: 'x' },
  verified: true,
}
const signup = {
  service_id: 5,
  account_name: '\n',
  metadata: { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6 },
  delivery: {
    version: 1,
    algorithm: 'x25519-hkdf-sha256/aes-256-gcm',
    key_id: 'A'.repeat(43),
    public_key: 'A'.repeat(43),
  },
}
const origins = ['x', 'https://a.example', 'y']
const keyByRules = { name: ' ', type: 'publishable', scopes: ['*'], allowed_origins: origins }
const secretKey = { name: 'k', type: 'secret', client_target: 'browser', allowed_origins: [] }
const keyBySchema = { name: ' ', rate_limit: 1, allowed_origins: ['x'] }
const endpoint = { name: ' ', url: 'http://127.0.0.1/', event_types: [] }
const sdk = { name: 'n', version: '1', platform: 'web' }
const nameless = { clientPublicKey: 'A'.repeat(43), sdk: { ...sdk, name: '\u0007' } }
const rotation = { ip: 5, proxy_provider: 'NOBODY', desired_country_code: 'xx' }
const collect = () => '/v2/collect/sessions'

/** Requests that make or change something, and the members of their bodies that do not fit. */
const cases: [string, 'POST' | 'PATCH', () => string, object, string][] = [
  [
    'a new organization',
    'POST',
    () => '/v1/organizations',
    { name: ' ', slug: 'A B', plan: 1 },
    'name plan slug',
  ],
  ['an organization', 'PATCH', own(''), { name: ' ', status: 'gone' }, 'name status'],
  [
    'a new key, by rules alone',
    'POST',
    own('/api-keys'),
    keyByRules,
    'allowed_origins.0 allowed_origins.2 name scopes',
  ],
  ['a new secret key', 'POST', own('/api-keys'), secretKey, 'allowed_origins client_target scopes'],
  [
    'a new key, by schema and rules',
    'POST',
    own('/api-keys'),
    keyBySchema,
    'allowed_origins.0 name rate_limit',
  ],
  ['a new webhook endpoint', 'POST', own('/webhooks/endpoints'), endpoint, 'event_types name url'],
  [
    'a webhook endpoint',
    'PATCH',
    () => own(`/webhooks/endpoints/${endpointId}`)(),
    { name: ' ', url: 'x', status: 'gone' },
    'name status url',
  ],
  [
    'a new service',
    'POST',
    () => '/v1/gate/services',
    service,
    'branding.logo_url branding.primary_color consent.terms_url discoverable docs_url env_vars.0.key env_vars.1.key env_vars.3.key id name sdks.0.install sdks.0.label sdks.0.url verified website',
  ],
  [
    'a signup',
    'POST',
    () => '/v1/gate/sessions',
    signup,
    'account_name delivery.public_key metadata service_id',
  ],
  ['a collect session', 'POST', collect, { clientPublicKey: 5, sdk }, 'clientPublicKey page'],
  ['a collect session that is none', 'POST', collect, [], 'body'],
  ['a collect session of a nameless SDK', 'POST', collect, nameless, 'sdk.name'],
  [
    'an IP rotation',
    'POST',
    () => '/v1/agents/ip-rotation',
    { items: [rotation] },
    'items.0.desired_country_code items.0.ip items.0.proxy_provider',
  ],
]

describe('all members that do not fit are named at once', () => {
  test.each(cases)('in %s', async (_, method, url, body, names) => {
    const publishable = await world.issue({ organizationId, type: 'publishable' })
    const headers = url().startsWith('/v2/') ? bearer(publishable.revealedKey) : key
    const answer = await sendExample(world.app, { method, url: url(), body, headers })
    const { error } = JSON.parse(answer.body)
    expect(answer.status).toBe(422)
    const named: string[] = error.details.fields.map((field: { name: string }) => field.name)
    expect(named.toSorted().join(' ')).toBe(names)
  })
})
