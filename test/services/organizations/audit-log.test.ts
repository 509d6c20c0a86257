import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readConfig } from '../../../infra/config.ts'
import { expireOverdue } from '../../../services/gate/expiry.ts'
import { sessionTtlMs } from '../../../services/gate/sessions.ts'
import { setDataPolicy } from '../../../services/organizations/data-policies.ts'
import { rotationGraceMs } from '../../../services/organizations/decide-key.ts'
import { revokeEndedKeys } from '../../../services/organizations/key-end-scheduler.ts'
import { recordDataExpiry } from '../../../services/organizations/retention-scheduler.ts'
import { sessionId, startWorld } from '../../authorization/world.ts'
import { freshAddress } from '../../support/gate-flow.ts'
import { type Send, sendTo } from '../../support/send.ts'

const responseSchema = z.object({
  data: z.looseObject({ id: z.string() }),
  meta: z.object({ request_id: z.string() }),
})
const page = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      type: z.string(),
      occurred_at: z.string(),
      environment: z.string().nullable(),
      subject_id: z.string(),
      reason: z.string().nullable(),
      actor: z.object({ type: z.string(), id: z.string() }),
      request_id: z.string().nullable(),
    }),
  ),
  pagination: z.object({ has_more: z.boolean(), next_cursor: z.string().optional() }),
})

const world = await startWorld()
const organizationId = await world.organization('audited')
const { keyId, revealedKey: key } = await world.issue({
  organizationId,
  type: 'secret',
  scopes: ['*'],
})
const serviceId = await world.service(organizationId)
afterAll(() => world.stop())

const organizationUrl = (path: string) => `/v1/organizations/${organizationId}${path}`

/** Sends a request that must succeed. Each has a distinct time, so that the order is defined. */
async function send(method: NonNullable<Send['method']>, url: string, request: Partial<Send> = {}) {
  world.now.ms += 1
  const from = { ip: freshAddress(), key }
  const { status, body } = await sendTo(world.app, { ...from, method, url, ...request })
  if (status >= 300) throw new Error(`${method} ${url}: ${JSON.stringify(body)}`)
  return body
}

const change = async (...sent: Parameters<typeof send>) => responseSchema.parse(await send(...sent))

/** Reads the whole audit log, page by page. */
async function auditLog({ limit = 200, url = organizationUrl('/audit-log'), by = key } = {}) {
  const entries: z.output<typeof page>['data'] = []
  for (let cursor = ''; ; ) {
    const read = await send('GET', `${url}?limit=${limit}&cursor=${cursor}`, { key: by })
    const { data, pagination } = page.parse(read)
    entries.push(...data)
    if (!pagination.next_cursor) return entries
    cursor = pagination.next_cursor
  }
}

const about = async (subject: string) =>
  (await auditLog())
    .filter(({ subject_id }) => subject_id === subject)
    .map(({ type, actor, request_id }) => ({ type, actor, request_id }))

/** Returns the entries added meanwhile. */
async function during<T>(work: () => Promise<T>) {
  const before = new Set((await auditLog()).map(({ id }) => id))
  const result = await work()
  return { result, entries: (await auditLog()).filter(({ id }) => !before.has(id)) }
}

describe('an entry has the actor and the request of', () => {
  test('a key', async () => {
    const created = await change('POST', organizationUrl('/api-keys'), { body: { name: 'New' } })
    const url = organizationUrl(`/api-keys/${created.data.id}`)
    const renamed = await change('PATCH', url, { body: { name: 'Newer' } })
    const rotated = await change('POST', `${url}/rotations`)
    const revoked = await change('DELETE', url)
    const actor = { type: 'key', id: keyId }
    expect(await about(created.data.id)).toEqual([
      { type: 'ApiKeyRevoked', actor, request_id: revoked.meta.request_id },
      { type: 'ApiKeyRotated', actor, request_id: rotated.meta.request_id },
      { type: 'ApiKeyRenamed', actor, request_id: renamed.meta.request_id },
      { type: 'ApiKeyIssued', actor, request_id: created.meta.request_id },
    ])
    expect(await about(rotated.data.id)).toEqual([
      { type: 'ApiKeyIssued', actor, request_id: rotated.meta.request_id },
    ])
  })

  test('a visitor correction by a key, with its reason', async () => {
    const [stays, goes] = [await world.person(organizationId), await world.person(organizationId)]
    const url = organizationUrl(`/visitors/${stays.visitorId}/merges`)
    const body = { visitor_id: goes.visitorId, reason: ' One person, two browsers. ' }
    await send('POST', url, { body })
    const entries = (await auditLog()).filter(({ type }) => type === 'VisitorCorrected')
    expect(entries).toMatchObject([
      { subject_id: stays.visitorId, reason: 'One person, two browsers.' },
    ])
    for (const reason of [' ', 'a\u0000b', 'a\nb', '\u202e', '\ud800', 'x'.repeat(501)])
      await expect(send('POST', url, { body: { ...body, reason } })).rejects.toThrow('reason')
  })

  test('changes by a key of an organization, an endpoint, a session and a service', async () => {
    const actor = { type: 'key', id: keyId }
    await send('PATCH', organizationUrl(''), { body: { name: 'Other' } })
    const body = {
      name: 'Hooks',
      url: 'https://shop.example/',
      event_types: ['session.result.persisted'],
    }
    const { data: endpoint } = await change('POST', organizationUrl('/webhooks/endpoints'), {
      body,
    })
    await send('DELETE', organizationUrl(`/webhooks/endpoints/${endpoint.id}`))
    await world.score(organizationId, 'live')
    for (const client_user_id of ['robin@shop.example', null])
      await send('PATCH', `/v1/sessions/${sessionId}`, { body: { client_user_id } })
    await send('PATCH', `/v1/gate/services/${serviceId}`, { body: { description: 'Else.' } })
    const newest = async (subject: string, count: number) => (await about(subject)).slice(0, count)
    const by = (...types: string[]) => types.map((type) => ({ type, actor }))
    expect(await newest(organizationId, 1)).toMatchObject(by('OrganizationRenamed'))
    expect(await newest(endpoint.id, 2)).toMatchObject(
      by('WebhookEndpointDisabled', 'WebhookEndpointCreated'),
    )
    expect(await newest(sessionId, 2)).toMatchObject(by('ClientUserCleared', 'ClientUserAttached'))
    expect(await newest(serviceId, 1)).toMatchObject(by('GateServiceChanged'))
  })

  test('an agent, the person who approves, and the service that ends a Gate session', async () => {
    const signup = await during(async () => {
      const { id, ackToken, pollToken, ...session } = await world.gate.signUp(serviceId)
      const body = { ack_token: ackToken }
      await send('POST', `/v1/gate/sessions/${id}/ack`, { body, key: pollToken })
      return { id, ...session }
    })
    const { id, keys, agentToken = '' } = signup.result
    const agent = { type: 'agent', id: keys.delivery.key_id }
    const person = { type: 'person', id: 'consent-page' }
    const service = { type: 'service', id: 'gate' }
    const account = expect.stringMatching(/^gacct_/)
    const request_id = expect.stringMatching(/^req_/)
    const byType = signup.entries.toSorted((a, b) => a.type.localeCompare(b.type))
    expect(byType).toMatchObject([
      { type: 'GateDeliveryAcknowledged', subject_id: id, actor: agent, request_id },
      { type: 'GateSessionApprovalStarted', subject_id: account, actor: person, request_id },
      { type: 'GateSessionApproved', subject_id: account, actor: service, request_id: null },
      { type: 'GateSessionOpened', subject_id: serviceId, actor: agent, request_id },
    ])
    const login = await during(() => world.gate.openLogin(serviceId, agentToken))
    const actor = { type: 'agent', id: account }
    const opened = { type: 'LoginSessionOpened', subject_id: account, actor, request_id }
    expect(login.entries).toMatchObject([opened])
  })

  test('a pending Gate session, without its id, which would allow approving it', async () => {
    const waiting = await world.gate.open(serviceId)
    const { agentToken = '' } = await world.gate.signUp(serviceId)
    const login = await world.gate.openLogin(serviceId, agentToken)
    const text = JSON.stringify(await auditLog())
    expect(text).not.toContain(waiting.id)
    expect(text).not.toContain(login)
  })

  test('the person who declines in a browser, or the agent that cancels', async () => {
    const request_id = expect.stringMatching(/^req_/)
    const rejected = { type: 'GateSessionRejected', request_id }
    const cancelled = async (headers: Record<string, string>) => {
      const { id, keys } = await world.gate.open(serviceId)
      await send('POST', `/v1/gate/sessions/${id}/cancel`, { headers, key: undefined })
      return { entries: await about(id), agent: { type: 'agent', id: keys.delivery.key_id } }
    }
    const declined = await cancelled({ origin: world.publicUrl })
    const person = { type: 'person', id: 'consent-page' }
    expect(declined.entries).toEqual([{ ...rejected, actor: person }])
    const { entries, agent } = await cancelled({})
    expect(entries).toEqual([{ ...rejected, actor: agent }])
  })

  test('the operator, and schedulers', async () => {
    const { keyId: old } = await world.issue({ organizationId })
    const { deps } = world
    await send('POST', organizationUrl(`/api-keys/${old}/rotations`))
    const { id } = await world.gate.open(serviceId)
    world.now.ms += sessionTtlMs
    await expireOverdue(world.gateParts)
    world.now.ms += rotationGraceMs
    await revokeEndedKeys(deps)
    await setDataPolicy(deps, { organizationId, changes: { session_days: 30 } })
    world.now.ms += 1
    await recordDataExpiry({ ...deps, config: readConfig({}) })
    const operator = { type: 'operator', id: 'test' }
    const scheduler = (name: string) => ({ type: 'scheduler', id: name })
    const entry = (type: string, actor: object) => ({ type, actor, request_id: null })
    expect((await about(old)).at(-1)).toEqual(entry('ApiKeyIssued', operator))
    expect((await about(old))[0]).toEqual(entry('ApiKeyRevoked', scheduler('key-end')))
    expect((await about(id))[0]).toEqual(entry('GateSessionExpired', scheduler('gate-time-outs')))
    expect((await about(organizationId)).slice(0, 2)).toEqual([
      entry('OrganizationDataExpired', scheduler('data-retention')),
      entry('OrganizationDataPolicyChanged', operator),
    ])
  })
})

test('pages list all entries of the organization, newest first, and no others', async () => {
  await world.issue({ organizationId: await world.organization('elsewhere') })
  const all = await auditLog()
  expect(all.length).toBeGreaterThan(20)
  expect(await auditLog({ limit: 3 })).toEqual(all)
  const order = all.map(({ occurred_at, id }) => `${occurred_at} ${id}`)
  expect(order).toEqual(order.toSorted().toReversed())
  expect(new Set(order).size).toBe(all.length)
  const organizations = all.map(({ subject_id }) => subject_id).filter((id) => /^org_/.test(id))
  expect(new Set(organizations)).toEqual(new Set([organizationId]))
})

test('filters are ANDed, and repeated types ORed', async () => {
  const all = await auditLog()
  const filtered = async (query: Record<string, string>[]) => {
    const parameters = new URLSearchParams(query.flatMap((part) => Object.entries(part)))
    const read = await send('GET', organizationUrl(`/audit-log?limit=200&${parameters}`))
    return page.parse(read).data.map(({ id }) => id)
  }
  const idsOf = (fits: (entry: (typeof all)[number]) => boolean) =>
    all.filter(fits).map(({ id }) => id)
  const byKey = [{ actor_type: 'key' }, { actor_id: keyId }]
  expect(await filtered([{ type: 'ApiKeyIssued' }, ...byKey])).toEqual(
    idsOf(({ type, actor }) => type === 'ApiKeyIssued' && actor.id === keyId),
  )
  const types = ['ApiKeyRevoked', 'WebhookEndpointCreated']
  const ofTypes = await filtered(types.map((type) => ({ type })))
  expect(ofTypes).toEqual(idsOf(({ type }) => types.includes(type)))
  expect(ofTypes.length).toBeGreaterThan(1)
  const { occurred_at: since = '', subject_id = '' } = all[9] ?? {}
  const until = all[3]?.occurred_at ?? ''
  expect(await filtered([{ since }, { until }])).toEqual(
    idsOf(({ occurred_at: at }) => at >= since && at < until),
  )
  expect(await filtered([{ subject_id }])).toEqual(
    idsOf((entry) => entry.subject_id === subject_id),
  )
  const wrong = await sendTo(world.app, { url: organizationUrl('/audit-log?type=Nothing'), key })
  expect([wrong.status, wrong.body.error.details.fields[0].name]).toEqual([422, 'type'])
  const binary = await sendTo(world.app, { url: organizationUrl('/audit-log?actor_id=%00'), key })
  expect([binary.status, binary.body.error.details.fields[0].name]).toEqual([422, 'actor_id'])
})

test('no entry contains personal data or a secret', async () => {
  const text = JSON.stringify(await auditLog())
  const secrets = ['sk_live_', 'whsec_', 'agt_', 'gtpoll_']
  for (const value of ['robin@shop.example', 'Robin', '10.0.', ...secrets])
    expect(text).not.toContain(value)
})

test('a test key reads entries of the test environment by any actor, without ids of live keys', async () => {
  const organizationId = await world.organization('both')
  const issue = (environment: 'live' | 'test') => {
    world.now.ms += 1
    return world.issue({ organizationId, type: 'secret', scopes: ['*'], environment })
  }
  const [live, ofTest] = [await issue('live'), await issue('test')]
  const url = `/v1/organizations/${organizationId}`
  const make = async (environment: string, { revealedKey }: typeof live) => {
    const request = { body: { name: 'New', environment }, key: revealedKey }
    return (await change('POST', `${url}/api-keys`, request)).data.id
  }
  const liveMade = await make('live', live)
  const testMade = [await make('test', live), await make('test', ofTest)]
  await send('PATCH', url, { body: { name: 'Both' }, key: live.revealedKey })
  const log = ({ revealedKey }: typeof live) =>
    auditLog({ url: `${url}/audit-log`, by: revealedKey })
  const read = await log(ofTest)
  for (const id of [live.keyId, liveMade]) expect(JSON.stringify(read)).not.toContain(id)
  const [byLive, operator] = [
    { type: 'key', id: 'live' },
    { type: 'operator', id: 'test' },
  ]
  expect(read.map(({ subject_id, actor }) => [subject_id, actor])).toEqual([
    [organizationId, byLive],
    [testMade[1], { type: 'key', id: ofTest.keyId }],
    [testMade[0], byLive],
    [ofTest.keyId, operator],
    [organizationId, operator],
    [organizationId, operator],
  ])
  expect(await log(live)).toHaveLength(read.length + 2)
  const found = async (actorId: string) => {
    const query = `${url}/audit-log?actor_id=${actorId}`
    return page.parse(await send('GET', query, { key: ofTest.revealedKey })).data.length
  }
  expect([await found('live'), await found(live.keyId)]).toEqual([2, 0])
})
