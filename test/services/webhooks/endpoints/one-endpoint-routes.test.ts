import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { liveSecrets, openSigningSecret } from '../../../../infra/wire/webhooks/signature.ts'
import { findEndpoint } from '../../../../projections/webhooks/queries.ts'
import { endpointsOf } from '../../../../services/webhooks/endpoints/commands.ts'
import { overlapMs } from '../../../../services/webhooks/endpoints/decide.ts'
import { serviceDisabled, serviceRegistered } from '../../../support/gate-service.ts'
import type { Send } from '../../../support/service-app.ts'
import { startWebhooks, type Webhooks } from './webhooks-app.ts'

let world: Webhooks
let own: Awaited<ReturnType<Webhooks['organization']>>
let endpoint: { id: string; url: string; signing_secret: string; [member: string]: unknown }
let path: string
const unknown = `we_${'0'.repeat(32)}`

beforeAll(async () => {
  world = await startWebhooks()
})
beforeEach(async () => {
  own = await world.organization()
  const body = {
    name: 'Shop',
    url: 'https://shop.example/',
    event_types: ['session.result.persisted'],
  }
  const created = await world.send({ method: 'POST', url: own.endpoints, key: own.key, body })
  endpoint = created.body.data
  path = `${own.endpoints}/${endpoint.id}`
  world.now.ms += 1000
})
afterAll(() => world.stop())

const send = (method: Send['method'], rest = '', options: Partial<Send> = {}) =>
  world.send({ ...(method && { method }), url: `${path}${rest}`, key: own.key, ...options })
const patch = (body: unknown) => send('PATCH', '', { body })
const rotate = (options: Partial<Send> = {}) => send('POST', '/rotations', options)
const sendTest = (options: Partial<Send> = {}) => send('POST', '/test', options)

async function stored() {
  const { organizationId, environment } = own
  const row = await findEndpoint(world.pool, {
    organizationId,
    environment,
    endpointId: endpoint.id,
  })
  if (!row) throw new Error('not stored')
  return row
}

async function secretsNow() {
  const { keyring } = world.deps
  const { id: endpointId, secrets } = await stored()
  const live = liveSecrets(secrets, world.now.ms)
  return live.map(({ sealed }) => openSigningSecret({ keyring, sealed, endpointId }))
}

describe('what is not there', () => {
  test.each([
    ['PATCH', '', { name: 'A' }],
    ['PATCH', '', { nonsense: true }],
    ['DELETE', '', undefined],
    ['POST', '/rotations', undefined],
    ['POST', '/test', undefined],
  ] as const)(
    '%s %s of an unknown endpoint, a malformed id or another environment is 404',
    async (...given) => {
      const [method, rest, body] = given
      const testKey = await world.secretKey(own.organizationId, 'test')
      const cases = [
        { url: `${own.endpoints}/${unknown}${rest}` },
        { url: `${own.endpoints}/${endpoint.signing_secret.replaceAll('/', '_')}${rest}` },
        { url: `${own.endpoints}/${'0'.repeat(32)}${rest}` },
        { key: testKey },
      ]
      for (const options of cases) {
        const answer = await send(method, rest, { body, ...options })
        expect([answer.status, answer.body.error.code]).toEqual([404, 'request.not_found'])
        expect(JSON.stringify(answer.body)).not.toContain('whsec')
      }
      const elsewhere = await world.organization()
      const answer = await send(method, rest, { body, key: elsewhere.key })
      expect([answer.status, answer.body.error.code]).toEqual([
        403,
        'auth.organization_access_denied',
      ])
      const foreign = { key: elsewhere.key, url: `${elsewhere.endpoints}/${endpoint.id}${rest}` }
      expect((await send(method, rest, { body, ...foreign })).status).toBe(404)
    },
  )
})

describe('changing', () => {
  test('what is named changes, all at once, and nothing else', async () => {
    const { signing_secret: _, ...before } = endpoint
    const changes = {
      name: 'Store',
      url: 'https://store.example/hooks',
      event_types: ['gate.session.approved'],
      status: 'disabled',
    }
    const { status, body } = await patch(changes)
    const updated_at = new Date(world.now.ms).toISOString()
    expect(status).toBe(200)
    expect(body.data).toEqual({ ...before, ...changes, disabled_reason: 'manual', updated_at })
    world.now.ms += 1000
    expect((await patch({ ...changes })).body.data).toEqual(body.data)
    const enabled = (await patch({ status: 'active' })).body.data
    expect(enabled).toMatchObject({ status: 'active', disabled_reason: null, name: 'Store' })
  })

  test.each<[unknown, string, string]>([
    [{}, 'body', 'invalid'],
    [undefined, 'body', 'invalid_type'],
    [{ name: null }, 'name', 'invalid_type'],
    [{ name: '' }, 'name', 'invalid'],
    [{ url: 'https://10.1.2.3/' }, 'url', 'invalid'],
    [{ event_types: [] }, 'event_types', 'required'],
    [{ event_types: ['webhook.test'] }, 'event_types.0', 'invalid_value'],
    [{ status: 'deleted' }, 'status', 'invalid_value'],
    [{ name: 'A', environment: 'test' }, 'environment', 'not_allowed'],
    [{ signing_secret: 'whsec_x' }, 'signing_secret', 'not_allowed'],
  ])('from %j is refused: %s %s', async (body, name, issue) => {
    const before = await stored()
    const answer = await patch(body)
    expect([answer.status, answer.body.error.details]).toEqual([
      422,
      expect.objectContaining({
        fields: [expect.objectContaining({ name, issue })],
        parameter_set: 'webhook_endpoint_update',
      }),
    ])
    expect(await stored()).toEqual(before)
  })

  test('an organization that was suspended meanwhile changes nothing', async () => {
    await world.suspend(own.organizationId)
    for (const answer of [
      await patch({ name: 'A' }),
      await send('DELETE'),
      await rotate(),
      await sendTest(),
    ])
      expect([answer.status, answer.body.error.code]).toEqual([403, 'auth.organization_inactive'])
  })
})

describe('disabling', () => {
  test('keeps the endpoint, and again it does nothing', async () => {
    const first = await send('DELETE')
    expect([first.status, first.body.data]).toMatchObject([
      200,
      { status: 'disabled', disabled_reason: 'manual' },
    ])
    world.now.ms += 1000
    expect((await send('DELETE')).body.data).toEqual(first.body.data)
  })

  test('is refused while a service is told of approvals there, as is an end of its subscription', async () => {
    const { organizationId } = own
    const serviceId = `told-${endpoint.id.slice(-20)}`
    const event_types = ['gate.session.approved', 'session.result.persisted']
    await patch({ event_types })
    const before = await stored()
    await world.append(
      own,
      serviceRegistered({ serviceId, organizationId, endpointId: endpoint.id }),
    )
    const unsubscribing = { event_types: ['session.result.persisted'] }
    for (const answer of [
      await send('DELETE'),
      await patch({ status: 'disabled' }),
      await patch(unsubscribing),
    ]) {
      expect([answer.status, answer.body.error.code]).toEqual([409, 'request.conflict'])
      expect(answer.body.error.message).toContain(serviceId)
    }
    expect(await stored()).toEqual(before)
    await world.append(own, serviceDisabled(serviceId, organizationId))
    expect((await send('DELETE')).status).toBe(200)
  })

  test('keeps the reason that was there', async () => {
    await world.append(own, {
      type: 'WebhookEndpointDisabled',
      data: {
        organization_id: own.organizationId,
        endpoint_id: endpoint.id,
        reason: 'gone',
        disabled_at: world.now.ms,
      },
    })
    expect((await send('DELETE')).body.data.disabled_reason).toBe('gone')
    expect((await patch({ status: 'disabled' })).body.data.disabled_reason).toBe('gone')
  })
})

describe('rotating', () => {
  test('shows a new secret once; the one before signs for 24 more hours', async () => {
    const { status, headers, body } = await rotate()
    expect([status, headers['cache-control']]).toEqual([201, 'no-store'])
    const { signing_secret: next } = body.data
    expect(next).toMatch(/^whsec_[A-Za-z0-9+/]{44}$/)
    expect(next).not.toBe(endpoint.signing_secret)
    const overlapMs = 24 * 3_600_000
    expect(Date.parse(body.data.previous_secret_ends_at)).toBe(world.now.ms + overlapMs)
    expect(await secretsNow()).toEqual([next, endpoint.signing_secret])
    world.now.ms += overlapMs - 1
    expect(await secretsNow()).toEqual([next, endpoint.signing_secret])
    world.now.ms += 1
    expect(await secretsNow()).toEqual([next])
    expect(
      JSON.stringify((await world.send({ url: own.endpoints, key: own.key })).body),
    ).not.toContain('whsec_')
  })

  test('is refused while three secrets sign, and does as soon as one has ended', async () => {
    expect((await rotate()).status).toBe(201)
    world.now.ms += 1000
    expect((await rotate()).status).toBe(201)
    expect(await secretsNow()).toHaveLength(3)
    const refused = await rotate()
    expect([refused.status, refused.body.error.code]).toEqual([409, 'request.conflict'])
    world.now.ms += overlapMs - 1000
    expect(await secretsNow()).toHaveLength(2)
    expect((await rotate()).status).toBe(201)
  })

  test('again with the same Idempotency-Key gives the same secret, also when no answer was stored', async () => {
    const headers = { 'idempotency-key': 'rotate' }
    const first = await rotate({ headers })
    expect((await rotate({ headers })).body).toEqual(first.body)
    await world.loseAnswers()
    world.now.ms += 1000
    const again = await rotate({ headers })
    expect([again.status, again.headers['idempotent-replayed']]).toEqual([201, undefined])
    expect(again.body.data).toEqual(first.body.data)
    expect(await secretsNow()).toEqual([first.body.data.signing_secret, endpoint.signing_secret])
  })
})

describe('testing', () => {
  test('raises an event with one delivery for this endpoint', async () => {
    await world.send({
      method: 'POST',
      url: own.endpoints,
      key: own.key,
      body: { ...pick(), name: 'Other' },
    })
    const { status, body } = await sendTest()
    expect(status).toBe(202)
    const at = new Date(world.now.ms).toISOString()
    const { event_id } = body.data
    expect(event_id).toMatch(/^evt_[0-9a-hjkmnp-tv-z]{26}$/)
    expect(body.data).toEqual({
      object: 'webhook_test',
      event_id,
      delivery_ids: [body.data.latest_delivery.id],
      latest_delivery: {
        object: 'webhook_delivery',
        id: expect.stringMatching(/^wdlv_[0-9a-f]{32}$/),
        event_id,
        endpoint_id: endpoint.id,
        event_type: 'webhook.test',
        status: 'pending',
        attempts: 0,
        next_attempt_at: at,
        response_status: null,
        response_body: null,
        error: null,
        created_at: at,
        updated_at: at,
      },
    })
    const shown = await world.send({ url: `${own.events}/${event_id}`, key: own.key })
    expect(shown.body.data).toEqual({
      object: 'event',
      id: event_id,
      type: 'webhook.test',
      subject: { type: 'webhook_endpoint', id: endpoint.id },
      data: { object: 'webhook_test', endpoint: { id: endpoint.id } },
      webhook_deliveries: [body.data.latest_delivery],
      created_at: at,
    })
  })

  test('of a disabled endpoint is a conflict', async () => {
    await send('DELETE')
    const { status, body } = await sendTest()
    expect([status, body.error.code]).toEqual([409, 'request.conflict'])
  })

  test('is refused the eleventh time within a minute, for this endpoint alone', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => sendTest()))
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(202))
    world.now.ms += 15_000
    const refused = await sendTest()
    expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limit.exceeded'])
    expect(refused.headers).toMatchObject({ 'retry-after': '45', 'x-ratelimit-cost': '1' })
    const other = await world.send({
      method: 'POST',
      url: own.endpoints,
      key: own.key,
      body: pick(),
    })
    const url = `${own.endpoints}/${other.body.data.id}/test`
    expect((await world.send({ method: 'POST', url, key: own.key })).status).toBe(202)
    world.now.ms += 45_000
    expect((await sendTest()).status).toBe(202)
  })

  test('again with the same Idempotency-Key sends nothing more', async () => {
    const headers = { 'idempotency-key': 'test' }
    const first = await sendTest({ headers })
    expect((await sendTest({ headers })).body).toEqual(first.body)
    await world.loseAnswers()
    expect((await sendTest({ headers })).body.data).toEqual(first.body.data)
    const { body } = await world.send({ url: own.events, key: own.key })
    expect(body.data).toHaveLength(1)
  })
})

test.each([
  ['DELETE', '', 'webhook_endpoint_disable'],
  ['POST', '/rotations', 'webhook_endpoint_rotate'],
  ['POST', '/test', 'webhook_endpoint_test'],
] as const)('%s %s takes no body but {}', async (method, rest, parameter_set) => {
  const refused = await send(method, rest, { body: { reason: 'x' } })
  expect([refused.status, refused.body.error.details]).toEqual([
    422,
    { fields: [{ name: 'reason', issue: 'not_allowed' }], parameter_set },
  ])
  expect((await send(method, rest, { body: {} })).status).toBeLessThan(300)
})

test('all that is decided about the endpoints of an organization is one command at a time', () => {
  expect(endpointsOf('org_x')).toEqual({
    topic: 'tidegate.webhooks.v1',
    projection: 'webhooks',
    key: 'org_x',
    locks: ['webhook-endpoints:org_x'],
  })
})

const pick = () => ({
  name: 'Shop',
  url: 'https://shop.example/',
  event_types: ['session.result.persisted'],
})
