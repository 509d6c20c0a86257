import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readConfig } from '../../../infra/config.ts'
import { sessionTtlMs } from '../../../services/gate/sessions.ts'
import { endOverdue } from '../../../services/gate/time-outs.ts'
import { setDataPolicy } from '../../../services/organizations/data-policies.ts'
import { graceMs } from '../../../services/organizations/decide-key.ts'
import { endGraces } from '../../../services/organizations/grace-scheduler.ts'
import { expireOldData } from '../../../services/organizations/retention-scheduler.ts'
import { sessionId, startWorld, type World } from '../../authorization/world.ts'
import { freshAddress } from '../../support/gate-flow.ts'

const answer = z.object({
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

let world: World
let organizationId: string
let keyId: string
let authorization: string
let serviceId: string

beforeAll(async () => {
  world = await startWorld()
  organizationId = await world.organization('audited')
  const issued = await world.issue({ organizationId, type: 'secret', scopes: ['*'] })
  keyId = issued.keyId
  authorization = `Bearer ${issued.revealedKey}`
  serviceId = await world.service(organizationId)
})
afterAll(() => world.stop())

interface Asked {
  body?: object
  headers?: Record<string, string>
}

async function send(
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  url: string,
  { body, headers = { authorization } }: Asked = {},
) {
  // Each at a time of its own, so that the order is known.
  world.now.ms += 1
  const response = await world.app.inject({
    method,
    url,
    remoteAddress: freshAddress(),
    headers,
    ...(body && { payload: body }),
  })
  if (response.statusCode >= 300) throw new Error(`${method} ${url}: ${response.body}`)
  return response
}

const own = (path: string) => `/v1/organizations/${organizationId}${path}`

/** The whole log, page by page. */
async function auditLog({ limit = 200 } = {}) {
  const entries: z.output<typeof page>['data'] = []
  for (let cursor = ''; ; ) {
    const { data, pagination } = page.parse(
      (await send('GET', own(`/audit-log?limit=${limit}&cursor=${cursor}`))).json(),
    )
    entries.push(...data)
    if (!pagination.next_cursor) return entries
    cursor = pagination.next_cursor
  }
}

const about = async (subject: string) =>
  (await auditLog())
    .filter(({ subject_id }) => subject_id === subject)
    .map(({ type, actor, request_id }) => ({ type, actor, request_id }))

/** What came to the log meanwhile. */
async function during<T>(work: () => Promise<T>) {
  const before = new Set((await auditLog()).map(({ id }) => id))
  const result = await work()
  const entries = (await auditLog()).filter(({ id }) => !before.has(id))
  return {
    result,
    entries: entries.map(({ id, occurred_at, environment, reason, ...shown }) => shown),
  }
}

describe('an entry says who it was, and by which request', () => {
  test('a key', async () => {
    const made = answer.parse(
      (await send('POST', own('/api-keys'), { body: { name: 'New' } })).json(),
    )
    const url = own(`/api-keys/${made.data.id}`)
    const renamed = answer.parse((await send('PATCH', url, { body: { name: 'Newer' } })).json())
    const rotated = answer.parse((await send('POST', `${url}/rotations`)).json())
    const revoked = answer.parse((await send('DELETE', url)).json())
    const actor = { type: 'key', id: keyId }
    expect(await about(made.data.id)).toEqual([
      { type: 'ApiKeyRevoked', actor, request_id: revoked.meta.request_id },
      { type: 'ApiKeyRotated', actor, request_id: rotated.meta.request_id },
      { type: 'ApiKeyRenamed', actor, request_id: renamed.meta.request_id },
      { type: 'ApiKeyIssued', actor, request_id: made.meta.request_id },
    ])
    expect(await about(rotated.data.id)).toEqual([
      { type: 'ApiKeyIssued', actor, request_id: rotated.meta.request_id },
    ])
  })

  test('a key that corrected a visitor, and why', async () => {
    const [stays, goes] = [await world.person(organizationId), await world.person(organizationId)]
    const body = { visitor_id: goes.visitorId, reason: ' One person, two browsers. ' }
    await send('POST', own(`/visitors/${stays.visitorId}/merges`), { body })
    const entries = (await auditLog()).filter(({ type }) => type === 'VisitorCorrected')
    expect(entries).toMatchObject([
      { subject_id: stays.visitorId, reason: 'One person, two browsers.' },
    ])
    for (const reason of [' ', 'a\u0000b', 'a\nb', '\u202e', '\ud800', 'x'.repeat(501)])
      await expect(
        send('POST', own(`/visitors/${stays.visitorId}/merges`), { body: { ...body, reason } }),
      ).rejects.toThrow('reason')
  })

  test('a key, of an organization, an endpoint, a session and a service', async () => {
    const actor = { type: 'key', id: keyId }
    await send('PATCH', own(''), { body: { name: 'Other' } })
    expect(await about(organizationId)).toContainEqual(
      expect.objectContaining({ type: 'OrganizationRenamed', actor }),
    )
    const body = {
      name: 'Hooks',
      url: 'https://shop.example/',
      event_types: ['session.result.persisted'],
    }
    const { data: endpoint } = answer.parse(
      (await send('POST', own('/webhooks/endpoints'), { body })).json(),
    )
    const { meta } = answer.parse(
      (await send('DELETE', own(`/webhooks/endpoints/${endpoint.id}`))).json(),
    )
    expect(await about(endpoint.id)).toMatchObject([
      { type: 'WebhookEndpointDisabled', actor, request_id: meta.request_id },
      { type: 'WebhookEndpointCreated', actor },
    ])
    await world.score(organizationId, 'live')
    await send('PATCH', `/v1/sessions/${sessionId}`, {
      body: { client_user_id: 'robin@shop.example' },
    })
    await send('PATCH', `/v1/sessions/${sessionId}`, { body: { client_user_id: null } })
    expect(await about(sessionId)).toMatchObject([
      { type: 'ClientUserCleared', actor },
      { type: 'ClientUserAttached', actor },
    ])
    await send('PATCH', `/v1/gate/services/${serviceId}`, { body: { description: 'Else.' } })
    expect(await about(serviceId)).toContainEqual(
      expect.objectContaining({ type: 'GateServiceChanged', actor }),
    )
  })

  test('an agent, the person who approves, and the service that ends it', async () => {
    const signup = await during(async () => {
      const { id, ackToken, pollToken, ...session } = await world.gate.signUp(serviceId)
      const headers = { authorization: `Bearer ${pollToken}` }
      await send('POST', `/v1/gate/sessions/${id}/ack`, { body: { ack_token: ackToken }, headers })
      return { id, ...session }
    })
    const { id, keys, agentToken = '' } = signup.result
    const agent = { type: 'agent', id: keys.delivery.key_id }
    const person = { type: 'person', id: 'consent-page' }
    const account = expect.stringMatching(/^gacct_/)
    const request_id = expect.stringMatching(/^req_/)
    expect(signup.entries).toHaveLength(4)
    expect(signup.entries).toEqual(
      expect.arrayContaining([
        { type: 'GateSessionOpened', subject_id: serviceId, actor: agent, request_id },
        { type: 'GateSessionApprovalStarted', subject_id: account, actor: person, request_id },
        {
          type: 'GateSessionApproved',
          subject_id: account,
          request_id: null,
          actor: { type: 'service', id: 'gate' },
        },
        { type: 'GateDeliveryAcknowledged', subject_id: id, actor: agent, request_id },
      ]),
    )
    const login = await during(() => world.gate.openLogin(serviceId, agentToken))
    const opened = { type: 'LoginSessionOpened', subject_id: account, request_id }
    expect(login.entries).toEqual([{ ...opened, actor: { type: 'agent', id: account } }])
  })

  test('nobody by the id of a session that waits: who knows it could decide', async () => {
    const waiting = await world.gate.open(serviceId)
    const { agentToken = '' } = await world.gate.signUp(serviceId)
    const login = await world.gate.openLogin(serviceId, agentToken)
    const text = JSON.stringify(await auditLog())
    expect(text).not.toContain(waiting.id)
    expect(text).not.toContain(login)
  })

  test('the person who declines in a browser, or the agent that gives up', async () => {
    const declined = await world.gate.open(serviceId)
    const { publicUrl } = world.gateParts
    const cancel = (id: string) => `/v1/gate/sessions/${id}/cancel`
    await send('POST', cancel(declined.id), { headers: { origin: publicUrl } })
    const request_id = expect.stringMatching(/^req_/)
    const rejected = { type: 'GateSessionRejected', request_id }
    const actor = { type: 'person', id: 'consent-page' }
    expect(await about(declined.id)).toEqual([{ ...rejected, actor }])
    const givenUp = await world.gate.open(serviceId)
    await send('POST', cancel(givenUp.id), { headers: {} })
    const agent = { type: 'agent', id: givenUp.keys.delivery.key_id }
    expect(await about(givenUp.id)).toEqual([{ ...rejected, actor: agent }])
  })

  test('the operator', async () => {
    const { keyId: made } = await world.issue({ organizationId })
    expect(await about(made)).toEqual([
      { type: 'ApiKeyIssued', actor: { type: 'operator', id: 'test' }, request_id: null },
    ])
  })

  test("the server's own clock", async () => {
    const { keyId: old } = await world.issue({ organizationId })
    await send('POST', own(`/api-keys/${old}/rotations`))
    const { id } = await world.gate.open(serviceId)
    world.now.ms += sessionTtlMs
    await endOverdue(world.gateParts)
    world.now.ms += graceMs
    await endGraces(world.deps)
    expect((await about(id))[0]).toEqual({
      type: 'GateSessionExpired',
      actor: { type: 'scheduler', id: 'gate-time-outs' },
      request_id: null,
    })
    expect((await about(old))[0]).toEqual({
      type: 'ApiKeyRevoked',
      actor: { type: 'scheduler', id: 'key-grace' },
      request_id: null,
    })
  })

  test('both of a data policy: the operator sets it, the clock ends data', async () => {
    const { deps } = world
    const config = readConfig({})
    await setDataPolicy(deps, { organizationId, changes: { session_days: 30 } })
    world.now.ms += 1
    await expireOldData({ ...deps, config })
    expect((await about(organizationId)).slice(0, 2)).toEqual([
      {
        type: 'OrganizationDataExpired',
        actor: { type: 'scheduler', id: 'data-retention' },
        request_id: null,
      },
      {
        type: 'OrganizationDataPolicyChanged',
        actor: { type: 'operator', id: 'test' },
        request_id: null,
      },
    ])
  })
})

test('pages are the list, newest first, and have nothing of another organization', async () => {
  await world.issue({ organizationId: await world.organization('elsewhere') })
  const all = await auditLog()
  expect(all.length).toBeGreaterThan(20)
  expect(await auditLog({ limit: 3 })).toEqual(all)
  const order = all.map(({ occurred_at, id }) => `${occurred_at} ${id}`)
  expect(order).toEqual(order.toSorted().toReversed())
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
  const foreign = all.filter(
    ({ subject_id }) => subject_id.startsWith('org_') && subject_id !== organizationId,
  )
  expect(foreign).toEqual([])
})

test('no entry has a value of a person, or a secret', async () => {
  const { body } = await send('GET', own('/audit-log?limit=200'))
  for (const text of [
    'robin@shop.example',
    'Robin',
    'sk_live_',
    'whsec_',
    'agt_',
    'gtpoll_',
    '10.0.',
  ])
    expect(body).not.toContain(text)
})

test('a test key reads no live id, and what was done to test things by whomever', async () => {
  const organizationId = await world.organization('both')
  const issue = (environment: 'live' | 'test') => {
    world.now.ms += 1
    return world.issue({ organizationId, type: 'secret', scopes: ['*'], environment })
  }
  const [live, ofTest] = [await issue('live'), await issue('test')]
  const headersOf = ({ revealedKey }: typeof live) => ({ authorization: `Bearer ${revealedKey}` })
  const url = `/v1/organizations/${organizationId}`
  const made: string[] = []
  const given = [
    { environment: 'live', by: live },
    { environment: 'test', by: live },
    { environment: 'test', by: ofTest },
  ]
  for (const { environment, by } of given) {
    const asked = { body: { name: 'New', environment }, headers: headersOf(by) }
    made.push(answer.parse((await send('POST', `${url}/api-keys`, asked)).json()).data.id)
  }
  await send('PATCH', url, { body: { name: 'Both' }, headers: headersOf(live) })
  const log = async (by: typeof live) =>
    page.parse((await send('GET', `${url}/audit-log?limit=200`, { headers: headersOf(by) })).json())
      .data
  const [liveMade, testMade, testMadeByTest] = made
  const read = await log(ofTest)
  for (const id of [live.keyId, liveMade]) expect(JSON.stringify(read)).not.toContain(id)
  expect(read.map(({ subject_id, actor }) => [subject_id, actor])).toEqual([
    [organizationId, { type: 'key', id: 'live' }],
    [testMadeByTest, { type: 'key', id: ofTest.keyId }],
    [testMade, { type: 'key', id: 'live' }],
    [ofTest.keyId, { type: 'operator', id: 'test' }],
    [organizationId, { type: 'operator', id: 'test' }],
    [organizationId, { type: 'operator', id: 'test' }],
  ])
  expect(await log(live)).toHaveLength(read.length + 2)
})

test('a key of another organization, or without the scope, reads nothing', async () => {
  const { revealedKey } = await world.issue({
    organizationId,
    type: 'secret',
    scopes: ['organizations:update'],
  })
  const refused = async (key: string) =>
    (
      await world.app.inject({
        method: 'GET',
        url: own('/audit-log'),
        headers: { authorization: `Bearer ${key}` },
      })
    ).statusCode
  expect(await refused(revealedKey)).toBe(403)
  const other = await world.issue({
    organizationId: await world.organization('stranger'),
    type: 'secret',
    scopes: ['organizations:read'],
  })
  expect(await refused(other.revealedKey)).toBe(403)
})
