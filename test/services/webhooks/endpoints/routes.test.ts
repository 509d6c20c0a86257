import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { dumpDatabase } from '../../../support/dump.ts'
import { createKnownSecrets } from '../../../support/known-secrets.ts'
import { createScanner } from '../../../support/secret-scan.ts'
import type { Send } from '../../../support/service-app.ts'
import { publishedSchema } from '../../readback/contract.ts'
import { startWebhooks, type Webhooks } from './webhooks-app.ts'

let world: Webhooks
let own: Awaited<ReturnType<Webhooks['organization']>>
const published = publishedSchema('WebhookEndpointListResponse')
const request = {
  name: ' Shop ',
  url: 'https://shop.example/hooks?a=1',
  event_types: ['session.result.persisted', 'session.fingerprint.calculated'],
}
const conflict = { code: 'request.conflict' }

beforeAll(async () => {
  world = await startWebhooks()
})
beforeEach(async () => {
  own = await world.organization()
})
afterAll(() => world.stop())

function create(body: unknown = request, options: Partial<Send> = {}) {
  // Of endpoints made in the same millisecond, any may be listed first.
  world.now.ms += 1
  return world.send({ method: 'POST', url: own.endpoints, key: own.key, body, ...options })
}

const list = (options: Partial<Send> = {}) =>
  world.send({ url: own.endpoints, key: own.key, ...options })

test('a new endpoint is active, and its signing secret is shown this once', async () => {
  const { status, headers, body } = await create()
  expect([status, headers['cache-control']]).toEqual([201, 'no-store'])
  const { signing_secret, ...data } = body.data
  expect(signing_secret).toMatch(/^whsec_[A-Za-z0-9+/]{44}$/)
  const at = new Date(world.now.ms).toISOString()
  expect(data).toEqual({
    object: 'webhook_endpoint',
    id: expect.stringMatching(/^we_[0-9a-f]{32}$/),
    name: 'Shop',
    url: 'https://shop.example/hooks?a=1',
    status: 'active',
    disabled_reason: null,
    flagged_reason: null,
    event_types: ['session.fingerprint.calculated', 'session.result.persisted'],
    previous_secret_ends_at: null,
    created_at: at,
    updated_at: at,
  })
  expect(Object.keys(body.data).join()).toBe(
    'object,id,name,url,status,disabled_reason,flagged_reason,event_types,signing_secret,previous_secret_ends_at,created_at,updated_at',
  )
  const listed = await list()
  expect(listed.body.data).toEqual([data])
  expect(JSON.stringify(listed.body)).not.toContain('whsec_')
})

test('the secret is stored sealed, in the log as in the read model', async () => {
  const { signing_secret, name } = (
    await create({ ...request, name: `Shop ${randomBytes(8).toString('hex')}` })
  ).body.data
  const secrets = createKnownSecrets()
  secrets.add('the signing secret', signing_secret)
  secrets.add('the bytes of the signing secret', signing_secret.slice('whsec_'.length))
  const scanner = createScanner([...secrets.all(), { name: 'the name', value: name }])
  const places = await dumpDatabase(world.url)
  const found = places.flatMap((place) => scanner.scan(place))
  expect(new Set(found.map(({ secret }) => secret))).toEqual(new Set(['the name']))
  const where = found.map(({ place }) => place)
  expect(where).toContainEqual(expect.stringMatching(/^table webhooks_b\d+\.webhook_endpoints/))
  expect(where).toContainEqual(expect.stringContaining('tidegate_log.records.value'))
})

test('an environment has its own list: newest first, complete, disabled ones too', async () => {
  const first = (await create()).body.data
  const second = (await create()).body.data
  const testKey = await world.secretKey(own.organizationId, 'test')
  const other = (await create(request, { key: testKey })).body.data
  await world.send({ method: 'DELETE', url: `${own.endpoints}/${first.id}`, key: own.key })
  const { body } = await list({ url: `${own.endpoints}?limit=1&cursor=x&type=y` })
  expect(body.data.map(({ id, status }: { id: string; status: string }) => [id, status])).toEqual([
    [second.id, 'active'],
    [first.id, 'disabled'],
  ])
  expect(body.pagination).toEqual({ limit: 200, has_more: false })
  expect((await list({ key: testKey })).body.data).toMatchObject([{ id: other.id }])
  const known = JSON.parse(
    JSON.stringify(body, (name, value) =>
      /^(disabled|flagged)_reason$|^previous_secret_ends_at$/.test(name) ? undefined : value,
    ),
  )
  expect(published.safeParse(known).error).toBeUndefined()
})

test('an offset is refused: it would give the same list again', async () => {
  const { status, body } = await list({ url: `${own.endpoints}?offset=50` })
  expect([status, body.error.details.fields[0].name]).toEqual([422, 'offset'])
})

test.each<[unknown, string, string]>([
  [null, 'body', 'invalid_type'],
  [{ ...request, name: undefined }, 'name', 'required'],
  [{ ...request, name: ' ' }, 'name', 'invalid'],
  [{ ...request, name: 'x'.repeat(101) }, 'name', 'invalid'],
  [{ ...request, name: 5 }, 'name', 'invalid_type'],
  [{ ...request, url: undefined }, 'url', 'required'],
  [{ ...request, url: 'http://shop.example/' }, 'url', 'invalid'],
  [{ ...request, url: 'https://127.0.0.1/' }, 'url', 'invalid'],
  [{ ...request, url: 'https://169.254.169.254/latest/meta-data' }, 'url', 'invalid'],
  [{ ...request, url: 'https://localhost/' }, 'url', 'invalid'],
  [{ ...request, url: 'https://a:b@shop.example/' }, 'url', 'invalid'],
  [{ ...request, url: `https://shop.example/${'x'.repeat(2000)}` }, 'url', 'invalid'],
  [{ ...request, event_types: undefined }, 'event_types', 'required'],
  [{ ...request, event_types: [] }, 'event_types', 'required'],
  [{ ...request, event_types: 'session.result.persisted' }, 'event_types', 'invalid_type'],
  [{ ...request, event_types: ['webhook.test'] }, 'event_types.0', 'invalid_value'],
  [{ ...request, event_types: ['*'] }, 'event_types.0', 'invalid_value'],
  [{ ...request, status: 'active' }, 'status', 'not_allowed'],
  [{ ...request, signing_secret: 'whsec_x' }, 'signing_secret', 'not_allowed'],
])('creating from %j is refused: %s %s', async (body, name, issue) => {
  const answer = await create(body)
  expect([answer.status, answer.body.error.details.fields[0]]).toEqual([
    422,
    expect.objectContaining({ name, issue }),
  ])
  expect(answer.body.error.details.parameter_set).toBe('webhook_endpoint_create')
  expect((await list()).body.data).toEqual([])
})

test('a URL is stored and shown as a URI, and is then the same URL', async () => {
  const { data } = (await create({ ...request, url: 'https://shop.example/ü|x' })).body
  expect(data.url).toBe('https://shop.example/%C3%BC%7Cx')
  const url = `${own.endpoints}/${data.id}`
  const again = await world.send({
    method: 'PATCH',
    url,
    key: own.key,
    body: { url: 'https://shop.example/ü|x' },
  })
  expect([again.status, again.body.data.updated_at]).toEqual([200, data.updated_at])
})

test('a repetition with the same Idempotency-Key is the same endpoint with the same secret', async () => {
  const headers = { 'idempotency-key': 'once' }
  const first = await create(request, { headers })
  const again = await create(request, { headers })
  expect([again.status, again.headers['idempotent-replayed']]).toEqual([201, 'true'])
  expect(again.body).toEqual(first.body)
  expect((await list()).body.data).toHaveLength(1)
  expect((await create({ ...request, name: 'Other' }, { headers })).status).toBe(422)
})

test('a repetition that finds no stored answer makes the same endpoint with the same secret', async () => {
  const headers = { 'idempotency-key': `lost-${randomBytes(4).toString('hex')}` }
  const first = await create(request, { headers })
  await world.loseAnswers()
  const again = await create(request, { headers })
  expect([again.status, again.headers['idempotent-replayed']]).toEqual([201, undefined])
  expect(again.body.data).toEqual(first.body.data)
  expect((await list()).body.data).toHaveLength(1)
})

test('the twenty-first active endpoint is a conflict, whatever its environment, until one is disabled', async () => {
  const testKey = await world.secretKey(own.organizationId, 'test')
  const created = await Promise.all(
    Array.from({ length: 20 }, (_, i) => create(request, { key: i % 2 === 0 ? own.key : testKey })),
  )
  expect(new Set(created.map(({ status }) => status))).toEqual(new Set([201]))
  const refused = await create()
  expect([refused.status, refused.body.error]).toEqual([409, expect.objectContaining(conflict)])
  const url = `${own.endpoints}/${created[0]?.body.data.id}`
  expect((await world.send({ method: 'DELETE', url, key: own.key })).status).toBe(200)
  expect((await create()).status).toBe(201)
  const enabled = await world.send({
    method: 'PATCH',
    url,
    key: own.key,
    body: { status: 'active' },
  })
  expect([enabled.status, enabled.body.error]).toEqual([409, expect.objectContaining(conflict)])
})

test('an organization that was suspended meanwhile gets no endpoint', async () => {
  await world.suspend(own.organizationId)
  const { status, body } = await create()
  expect([status, body.error.code]).toEqual([403, 'auth.organization_inactive'])
})
