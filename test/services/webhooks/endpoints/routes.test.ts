import { randomBytes } from 'node:crypto'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { activeSecrets, openSigningSecret } from '../../../../infra/wire/webhooks/signature.ts'
import { findEndpoint } from '../../../../projections/webhooks/queries.ts'
import { type ApiOrganization, startApi } from '../../../support/api.ts'
import { dumpDatabase } from '../../../support/dump.ts'
import { serviceDisabled, serviceRegistered } from '../../../support/gate-service.ts'
import { createKnownSecrets } from '../../../support/known-secrets.ts'
import { createScanner } from '../../../support/secret-scan.ts'
import type { Send } from '../../../support/send.ts'

let own: ApiOrganization
const request = {
  name: ' Shop ',
  url: 'https://shop.example/hooks?a=1',
  event_types: ['session.result.persisted', 'session.fingerprint.calculated'],
}

// The log is in the database, so that tests can search it for secrets.
const api = await startApi({ log: 'postgres' })
beforeEach(async () => {
  own = await api.organization()
})
afterAll(() => api.stop())

const unused = {
  deliveries: 0,
  succeeded: 0,
  pending: 0,
  success_rate: null,
  latency_p50_ms: null,
  latency_p95_ms: null,
  last_failure: null,
}

const endpoints = () => `${own.path}/webhooks/endpoints`
const events = () => `${own.path}/events`

const post = (url: string, options: Partial<Send> = {}) =>
  api.send({ method: 'POST', url, key: own.key, ...options })
const create = (body: unknown = request) => post(endpoints(), { body })
const list = () => api.send({ url: endpoints(), key: own.key })

/** Creates an endpoint and returns functions that send requests about it. */
async function newEndpoint() {
  const { id, signing_secret } = (await create()).body.data
  api.now.ms += 1000
  const url = `${endpoints()}/${id}`
  const send = (method: Send['method'], body?: unknown) =>
    api.send({ ...(method && { method }), url, key: own.key, body })
  return {
    id,
    signing_secret,
    url,
    patch: (body: unknown) => send('PATCH', body),
    disable: () => send('DELETE'),
  }
}

test('a new endpoint is active, and its signing secret is returned only now', async () => {
  const { status, headers, body } = await create()
  expect([status, headers['cache-control']]).toEqual([201, 'no-store'])
  const { signing_secret, ...data } = body.data
  expect(signing_secret).toMatch(/^whsec_[A-Za-z0-9+/]{44}$/)
  expect(data).toMatchObject({ name: 'Shop', url: request.url, status: 'active' })
  const listed = await list()
  expect(listed.body.data).toEqual([{ ...data, health: { ...unused, status: 'idle' } }])
  expect(JSON.stringify(listed.body)).not.toContain('whsec_')
})

test('the secret is stored encrypted, on the log and in the read model', async () => {
  const name = `Shop ${randomBytes(8).toString('hex')}`
  const { signing_secret } = (await create({ ...request, name })).body.data
  const secrets = createKnownSecrets()
  secrets.add('the signing secret', signing_secret)
  secrets.add('the bytes of the signing secret', signing_secret.slice('whsec_'.length))
  const scanner = createScanner([...secrets.all(), { name: 'the name', value: name }])
  const found = (await dumpDatabase(api.url)).flatMap((place) => scanner.scan(place))
  expect(new Set(found.map(({ secret }) => secret))).toEqual(new Set(['the name']))
  const where = found.map(({ place }) => place)
  expect(where).toContainEqual(expect.stringMatching(/^table webhooks_b\d+\.webhook_endpoints/))
  expect(where).toContainEqual(expect.stringContaining('tidegate_log.records.value'))
})

test('a forbidden URL is rejected when an endpoint is created or moved', async () => {
  const { patch } = await newEndpoint()
  const before = (await list()).body.data
  const url = 'https://127.0.0.1/'
  for (const answer of [await create({ ...request, url }), await patch({ url })]) {
    expect(answer.status).toBe(422)
    expect(answer.body.error.details.fields).toMatchObject([{ name: 'url', issue: 'invalid' }])
  }
  expect((await list()).body.data).toEqual(before)
})

test('a filter is set, replaced and removed, and stays when other members change', async () => {
  const create = async (filter?: unknown) =>
    (await post(endpoints(), { body: { ...request, filter } })).body.data
  expect((await create()).filter).toBeNull()
  expect((await create(null)).filter).toBeNull()
  const { id, filter } = await create({ verdicts: ['human', 'bot', 'bot'], min_risk_score: 0 })
  expect(filter).toEqual({ verdicts: ['bot', 'human'], min_risk_score: 0 })
  const patch = async (body: object) =>
    (await api.send({ method: 'PATCH', url: `${endpoints()}/${id}`, key: own.key, body })).body.data
  expect(await patch({ filter: { min_risk_score: 60 } })).toMatchObject({
    filter: { min_risk_score: 60 },
    event_types: request.event_types.toSorted(),
  })
  expect((await patch({ event_types: ['session.result.persisted'] })).filter).toEqual({
    min_risk_score: 60,
  })
  expect((await patch({ filter: null })).filter).toBeNull()
  expect((await list()).body.data).toContainEqual(expect.objectContaining({ id, filter: null }))
})

test.each([
  ['filter', 'invalid', 'at least one of verdicts, min_risk_score', {}],
  ['filter.verdicts', 'too_small', 'at least 1 item', { verdicts: [] }],
  ['filter.verdicts.0', 'invalid_value', 'one of allowed_values', { verdicts: ['robot'] }],
  ['filter.min_risk_score', 'too_large', 'at most 100', { min_risk_score: 101 }],
  ['filter.min_risk_score', 'too_small', 'at least 0', { min_risk_score: -1 }],
  ['filter.min_risk_score', 'invalid_type', 'int', { min_risk_score: 0.5 }],
  ['filter.score', 'not_allowed', undefined, { score: 1 }],
])('%s is rejected (%s, %s): %j', async (name, issue, expected, filter) => {
  const { patch } = await newEndpoint()
  for (const answer of [await create({ ...request, filter }), await patch({ filter })]) {
    expect(answer.status).toBe(422)
    expect(answer.body.error.details.fields).toEqual([
      { name, issue, ...(expected !== undefined && { expected }) },
    ])
  }
})

test('an endpoint returns 404 for a key of the other environment, whatever the body', async () => {
  const { url } = await newEndpoint()
  const { organizationId } = own
  const issued = await api.issue({ organizationId, environment: 'test', scopes: ['*'] })
  const key = issued.revealedKey
  const answers = [
    await api.send({ method: 'PATCH', url, key, body: { nonsense: true } }),
    await api.send({ method: 'DELETE', url, key }),
    await post(`${url}/rotations`, { key }),
    await post(`${url}/test`, { key }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404])
  expect((await api.send({ url: endpoints(), key })).body.data).toEqual([])
})

test('an endpoint that a Gate service needs cannot be disabled or unsubscribed', async () => {
  const { organizationId } = own
  const { id, patch, disable } = await newEndpoint()
  const serviceId = `told-${id.slice(-20)}`
  await patch({ event_types: ['gate.session.approved', 'session.result.persisted'] })
  await api.write(own, serviceRegistered({ serviceId, organizationId, endpointId: id }))
  await api.caughtUp()
  for (const { status, body } of [
    await disable(),
    await patch({ event_types: request.event_types }),
  ])
    expect([status, body.error.message]).toEqual([409, expect.stringContaining(serviceId)])
  await api.write(own, serviceDisabled(serviceId, organizationId))
  await api.caughtUp()
  expect((await disable()).body.data).toMatchObject({ status: 'disabled' })
})

test('a rotation returns a new secret once, and the previous one signs for another 24 hours', async () => {
  const { id: endpointId, url, signing_secret: first } = await newEndpoint()
  const { headers, body } = await post(`${url}/rotations`)
  expect(headers['cache-control']).toBe('no-store')
  const { signing_secret: next, previous_secret_ends_at } = body.data
  const endsAt = Date.parse(previous_secret_ends_at)
  expect(endsAt).toBe(api.now.ms + 24 * 3_600_000)
  const row = await findEndpoint(api.pool, { ...own, endpointId })
  const signing = (at: number) =>
    activeSecrets(row?.secrets ?? [], at).map(({ sealed }) =>
      openSigningSecret({ keyring: api.deps.keyring, sealed, endpointId }),
    )
  expect([signing(api.now.ms), signing(endsAt - 1)]).toEqual(Array(2).fill([next, first]))
  expect(signing(endsAt)).toEqual([next])
  expect(JSON.stringify((await list()).body)).not.toContain('whsec_')
})

test('a test raises an event with one delivery to this endpoint', async () => {
  const { id, url } = await newEndpoint()
  await newEndpoint()
  const { status, body } = await post(`${url}/test`)
  const { event_id, latest_delivery } = body.data
  expect([status, latest_delivery]).toMatchObject([202, { endpoint_id: id, status: 'pending' }])
  const { data } = (await api.send({ url: `${events()}/${event_id}`, key: own.key })).body
  expect(data).toMatchObject({
    type: 'webhook.test',
    subject: { type: 'webhook_endpoint', id },
    webhook_deliveries: [latest_delivery],
  })
})

test.each([
  ['creating', '', request],
  ['rotating', '/rotations', undefined],
  ['testing', '/test', undefined],
])(
  '%s again with an Idempotency-Key whose response was lost takes effect once',
  async (_, rest, body) => {
    const url = rest ? `${(await newEndpoint()).url}${rest}` : endpoints()
    const headers = { 'idempotency-key': `lost-${randomBytes(4).toString('hex')}` }
    const done = async () => [
      (await list()).body.data,
      (await api.send({ url: events(), key: own.key })).body.data,
    ]
    const first = await post(url, { headers, body })
    const before = await done()
    await api.loseAnswers()
    const again = await post(url, { headers, body })
    expect(again.headers['idempotent-replayed']).toBeUndefined()
    expect(again.body.data).toEqual(first.body.data)
    expect(await done()).toEqual(before)
  },
)
