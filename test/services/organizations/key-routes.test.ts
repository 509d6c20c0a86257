import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseApiKey } from '../../../infra/crypto/api-keys.ts'
import { list, single } from '../../../infra/http/schemas.ts'
import { apiKeySchema, issuedApiKeySchema } from '../../../services/organizations/schemas.ts'
import type { Send } from '../../support/service-app.ts'
import { publishedSchema } from '../readback/contract.ts'
import { type Organizations, startOrganizations } from './support.ts'

let world: Organizations
let own: Awaited<ReturnType<Organizations['organization']>>
const ours = { issued: single(issuedApiKeySchema), list: list(apiKeySchema) }
const published = {
  issued: publishedSchema('IssuedApiKeyResponse'),
  list: publishedSchema('ApiKeyListResponse'),
}
const narrow = ['sessions:read', 'sessions:update', 'fingerprints:read']

beforeAll(async () => {
  world = await startOrganizations()
  own = await world.organization()
})
afterAll(() => world.stop())

function create(body?: unknown, options: Partial<Send> = {}) {
  // Of keys made in the same millisecond, any may be listed first.
  world.now.ms += 1
  return world.send({ method: 'POST', url: `${own.path}/api-keys`, key: own.key, body, ...options })
}

/** As we and others describe it; the published schema does not know `client_target`. */
function expectShape(kind: keyof typeof ours, body: unknown): void {
  expect(ours[kind].safeParse(body).error).toBeUndefined()
  const known = JSON.parse(
    JSON.stringify(body, (name, value) => (name === 'client_target' ? undefined : value)),
  )
  expect(published[kind].safeParse(known).error).toBeUndefined()
}

test('a name alone makes a secret key with the narrow scopes, shown whole this once', async () => {
  const { status, headers, body } = await create({ name: ' Server ' })
  expect(status).toBe(201)
  expect(headers['cache-control']).toBe('no-store')
  expectShape('issued', body)
  const { revealed_key, ...data } = body.data
  expect(parseApiKey(revealed_key)).toEqual({ type: 'secret', environment: 'live' })
  expect(data).toEqual({
    object: 'api_key',
    id: expect.stringMatching(/^key_[0-9a-hjkmnp-tv-z]{26}$/),
    type: 'secret',
    environment: 'live',
    name: 'Server',
    status: 'active',
    client_target: 'browser',
    allowed_origins: null,
    scopes: narrow,
    rate_limit: null,
    key_preview: expect.stringMatching(/^sk_live_.{4}\.\.\..{4}$/),
    last_used_at: null,
    created_at: new Date(world.now.ms).toISOString(),
    rotated_at: null,
    revoked_at: null,
    grace_expires_at: null,
  })
  const listed = await world.send({ url: `${own.path}/api-keys?limit=1`, key: own.key })
  expect(listed.body.data).toEqual([data])
  expect(JSON.stringify(listed.body)).not.toContain(revealed_key)
})

test('a publishable key shows itself whole, also later', async () => {
  const { body } = await create({ name: 'Shop', allowed_origins: ['https://Shop.example'] })
  expectShape('issued', body)
  const { revealed_key, ...data } = body.data
  expect(data).toMatchObject({
    type: 'publishable',
    environment: 'live',
    allowed_origins: ['https://shop.example'],
    scopes: null,
    display_key: revealed_key,
  })
  const listed = await world.send({ url: `${own.path}/api-keys?limit=1`, key: own.key })
  expect(listed.body.data).toEqual([data])
})

test('the members come in the order of the published interface', async () => {
  const { body } = await create({ name: 'Shop', type: 'publishable' })
  expect(Object.keys(body.data).join()).toBe(
    'object,id,type,environment,name,status,client_target,allowed_origins,scopes,rate_limit,key_preview,display_key,revealed_key,last_used_at,created_at,rotated_at,revoked_at,grace_expires_at',
  )
})

test.each(['native-ios', 'native-android'])(
  'a %s key says so and has no origins',
  async (client_target) => {
    const { body } = await create({ name: 'App', client_target })
    expect(body.data).toMatchObject({ type: 'publishable', client_target, allowed_origins: [] })
  },
)

test("the environment is the calling key's own; a live key makes test keys, too, and no test key a live one", async () => {
  const { organizationId } = own
  const { revealedKey: key } = await world.issue({
    organizationId,
    environment: 'test',
    type: 'secret',
    scopes: ['*'],
  })
  expect((await create({ name: 'A' }, { key })).body.data.environment).toBe('test')
  for (const by of [key, own.key]) {
    const { status, body } = await create({ name: 'A', environment: 'test' }, { key: by })
    expect([status, body.data.environment]).toEqual([201, 'test'])
  }
  const { status, body } = await create({ name: 'A', environment: 'live' }, { key })
  expect([status, body.error.code]).toEqual([422, 'request.validation_failed'])
  expect(body.error.details).toEqual({
    fields: [{ name: 'environment', issue: 'not_allowed', expected: 'test, as the caller' }],
    parameter_set: 'api_key_create',
  })
})

const pasted = `sk_live_${'0'.repeat(38)}`
test.each([
  [undefined, 'body', 'invalid_type'],
  [{}, 'name', 'required'],
  [{ name: 'A', rate_limit: 5 }, 'rate_limit', 'not_allowed'],
  [{ name: 'A', rate_limit: null }, 'rate_limit', 'not_allowed'],
  [{ name: 'A', key_preview: 'x' }, 'key_preview', 'not_allowed'],
  [{ name: 'A', type: 'secret' }, 'scopes', 'required'],
  [{ name: 'A', type: 'secret', scopes: [] }, 'scopes', 'required'],
  [{ name: 'A', scopes: ['*'] }, 'type', 'required'],
  [{ name: 'A', type: 'publishable', scopes: ['*'] }, 'scopes', 'not_allowed'],
  [{ name: 'A', type: 'secret', scopes: ['organizations:manage'] }, 'scopes.0', 'invalid_value'],
  [{ name: 'A', type: 'secret', scopes: [pasted] }, 'scopes.0', 'invalid_value'],
  [
    { name: 'A', type: 'secret', scopes: ['*'], allowed_origins: ['https://a.example'] },
    'allowed_origins',
    'not_allowed',
  ],
  [
    { name: 'A', client_target: 'native-ios', allowed_origins: [] },
    'allowed_origins',
    'not_allowed',
  ],
  [{ name: 'A', client_target: 'native_ios' }, 'client_target', 'invalid_value'],
  [{ name: 'A', allowed_origins: ['http://a.example'] }, 'allowed_origins.0', 'invalid'],
  [{ name: 'A', allowed_origins: [pasted] }, 'allowed_origins.0', 'invalid'],
  [
    { name: 'A', allowed_origins: Array(51).fill('https://a.example') },
    'allowed_origins',
    'too_many',
  ],
  [{ name: ' ' }, 'name', 'invalid'],
  [{ name: `${pasted.repeat(3)}` }, 'name', 'invalid'],
  [{ name: 'A', environment: 'prod' }, 'environment', 'invalid_value'],
])('creating from %j is refused: %s %s', async (body, name, issue) => {
  const answer = await create(body)
  expect(answer.status).toBe(422)
  const { message, details } = answer.body.error
  expect(details.fields[0]).toMatchObject({ name, issue })
  expect(message).toBe(`${name}: ${issue}`)
  expect(details.parameter_set).toBe('api_key_create')
  if (name === 'scopes.0') expect(details.allowed_values).toContain('sessions:read')
  expect(JSON.stringify(answer.body)).not.toContain('00000000')
})

test('the key after the hundredth is refused with what to do about it', async () => {
  const { organizationId, key, path } = await world.organization()
  for (let i = 1; i < 100; i++) await world.issue({ organizationId })
  const { status, body } = await world.send({
    method: 'POST',
    url: `${path}/api-keys`,
    key,
    body: { name: 'One more' },
  })
  expect([status, body.error.code]).toEqual([409, 'request.conflict'])
  expect(body.error.message).toBe(
    'An organization can have 100 active keys: revoke one that is not used any more, and send the request again.',
  )
  expect(body.error.details).toEqual({ next_action: 'contact_support' })
})

test('keys are listed newest first, those of both environments and revoked ones', async () => {
  const { organizationId, key, ownerId, path } = await world.organization()
  const ids = [ownerId]
  for (const environment of ['live', 'test', 'live'] as const) {
    world.now.ms += 1
    ids.unshift((await world.issue({ organizationId, environment })).keyId)
  }
  await world.send({ method: 'DELETE', url: `${path}/api-keys/${ids[1]}`, key })
  const first = await world.send({ url: `${path}/api-keys?limit=3`, key })
  expectShape('list', first.body)
  expect(first.body.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 3))
  expect(first.body.data[1].status).toBe('revoked')
  const { next_cursor, ...page } = first.body.pagination
  expect(page).toEqual({ limit: 3, has_more: true })
  const rest = await world.send({ url: `${path}/api-keys?limit=3&cursor=${next_cursor}`, key })
  expect(rest.body.data.map(({ id }: { id: string }) => id)).toEqual([ownerId])
  expect(rest.body.pagination).toEqual({ limit: 3, has_more: false })
})

test('a list refuses an offset, a bad limit, and a cursor of another list', async () => {
  const other = await world.organization()
  await world.issue({ organizationId: other.organizationId })
  const { body } = await world.send({ url: `${other.path}/api-keys?limit=1`, key: other.key })
  const queries = [
    'offset=1',
    'limit=0',
    'limit=201',
    'limit=x',
    `cursor=${body.pagination.next_cursor}`,
  ]
  for (const query of queries) {
    const { status } = await world.send({ url: `${own.path}/api-keys?${query}`, key: own.key })
    expect([query, status]).toEqual([query, 422])
  }
})

test("a cursor is of the calling key's environment, though the list shows both", async () => {
  const { organizationId, key, path } = await world.organization()
  const { revealedKey: testKey } = await world.issue({
    organizationId,
    environment: 'test',
    type: 'secret',
    scopes: ['*'],
  })
  const { body } = await world.send({ url: `${path}/api-keys?limit=1`, key })
  const next = `${path}/api-keys?limit=1&cursor=${body.pagination.next_cursor}`
  expect((await world.send({ url: next, key })).status).toBe(200)
  const refused = await world.send({ url: next, key: testKey })
  expect([refused.status, refused.body.error.message]).toEqual([422, 'cursor: invalid'])
})

test('a key says when it was last used', async () => {
  const { key, path } = await world.organization()
  await world.send({ url: `${path}/api-keys`, key })
  await world.usage.flush()
  const { body } = await world.send({ url: `${path}/api-keys`, key })
  expect(body.data[0].last_used_at).toBe(new Date(world.now.ms).toISOString())
})

test('a repeated creation with the same Idempotency-Key makes one key and shows it again', async () => {
  const headers = { 'idempotency-key': 'one-key' }
  const first = await create({ name: 'Once' }, { headers })
  const second = await create({ name: 'Once' }, { headers })
  expect(second.body).toEqual(first.body)
  expect(second.headers).toMatchObject({
    'idempotent-replayed': 'true',
    'cache-control': 'no-store',
  })
  const { rows } = await world.pool.query("select 1 from read.api_keys where name = 'Once'")
  expect(rows).toHaveLength(1)
})

test('an Idempotency-Key gives nobody a key that was made by one who may more', async () => {
  const { organizationId } = own
  const headers = { 'idempotency-key': 'mighty' }
  const asked = { name: 'Mighty', type: 'secret', scopes: ['*'] }
  const made = await create(asked, { headers })
  expect(made.status).toBe(201)
  const scopes = ['api_keys:manage']
  const { revealedKey: key } = await world.issue({ organizationId, type: 'secret', scopes })
  const refused = await create(asked, { headers, key })
  expect([refused.status, refused.body.error.details.header_name]).toEqual([422, 'Idempotency-Key'])
  expect(JSON.stringify(refused.body)).not.toContain(made.body.data.revealed_key)
  const { revealedKey: alike } = await world.issue({
    organizationId,
    type: 'secret',
    scopes: ['*'],
  })
  expect((await create(asked, { headers, key: alike })).body).toEqual(made.body)
})

test("another organization's keys are neither listed nor made", async () => {
  const other = await world.organization()
  for (const request of [{}, { method: 'POST', body: { name: 'A' } }] as const) {
    const { status, body } = await world.send({
      ...request,
      url: `${other.path}/api-keys`,
      key: own.key,
    })
    expect([status, body.error.code]).toEqual([403, 'auth.organization_access_denied'])
  }
})
