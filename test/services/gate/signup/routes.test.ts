import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { generateToken } from '../../../../infra/crypto/tokens.ts'
import { generateDeliveryKeys, openEnvelope } from '../../../../infra/wire/delivery-envelope.ts'
import { expireOverdue, purgeGate } from '../../../../services/gate/expiry.ts'
import { deliveryTtlMs, sessionTtlMs } from '../../../../services/gate/sessions.ts'
import { pageClosedForMs } from '../../../../services/gate/store.ts'
import {
  type ApprovedSignup,
  answeringService,
  freshAddress,
  type OpenedSession,
} from '../../../support/gate-flow.ts'
import { publicUrl } from '../../../support/send.ts'
import { responding, useGateApi } from '../gate-api.ts'

const gate = await useGateApi()
const owner = await gate.owner()
beforeEach(() => {
  gate.script.answer = answeringService
})

const open = () => gate.flow.open('tidegate')
const poll = ({ id, pollToken: key }: OpenedSession) => gate.ask(`sessions/${id}`, { key })
const consent = (id: string, headers = {}) => gate.ask(`sessions/${id}/consent`, { headers })
const cancel = (id: string, query = '', body?: object) =>
  gate.post(`sessions/${id}/cancel${query}`, body)
const ack = ({ id, pollToken: key, ackToken: ack_token }: ApprovedSignup) =>
  gate.post(`sessions/${id}/ack`, { ack_token }, { key })

async function rowsKept() {
  const { rows } = await gate.pool.query<{ limits: number; keys: number }>(
    `select (select count(*)::int from tidegate.gate_limits) as limits,
       (select count(*)::int from tidegate.idempotency_keys) as keys`,
  )
  return rows[0]
}

describe('a new signup', () => {
  const create = (service_id: string, more: object = {}) => {
    const { delivery } = generateDeliveryKeys()
    return gate.post('sessions', { service_id, account_name: 'Robin', delivery }, more)
  }

  test('returns its poll token once, and stores the requester without misleading characters', async () => {
    const userAgent = Buffer.from(`agent\u202e${'x'.repeat(300)}`).toString('latin1')
    const ip = '198.51.100.7'
    const { data } = await create('tidegate', { ip, headers: { 'user-agent': userAgent } })
    const stored = await gate.session(data.id)
    expect(stored).toMatchObject({ account_name: 'Robin', requested_ip: ip })
    expect([...(stored?.requested_user_agent ?? '')]).toHaveLength(200)
    expect(stored?.requested_user_agent).not.toContain('\u202e')
    expect(JSON.stringify(stored)).not.toContain(data.poll_token)
  })

  test('is rejected if the organization is suspended, while pending signups continue', async () => {
    const suspended = await gate.owner()
    const { id } = await gate.flow.open(suspended.serviceId)
    await gate.setStatus(suspended.organizationId, 'suspended')
    expect((await create(suspended.serviceId)).outcome).toBe('404 request.not_found')
    expect((await consent(id)).data.service.id).toBe(suspended.serviceId)
  })
})

describe('polling', () => {
  test('returns the credentials repeatedly for a day', async () => {
    const signup = await gate.flow.signUp(owner.serviceId)
    const { data } = await poll(signup)
    const { integrator, gate: own } = data.delivery_bundle
    const { privateKey } = signup.keys
    const outputs = { ACME_API_KEY: `key of ${data.gate_account_id}` }
    expect(openEnvelope(integrator, privateKey).outputs).toEqual(outputs)
    expect(openEnvelope(own, privateKey).ack_token).toBe(signup.ackToken)
    gate.now.ms += deliveryTtlMs - 1
    expect((await poll(signup)).data).toEqual(data)
    gate.now.ms += 1
    const late = await poll(signup)
    expect(late.outcome).toBe('410 gate.delivery_consumed')
    expect(late.error.message).toMatch(/^Nobody acknowledged the credentials within 24 hours/)
  })

  test('reports an approval in progress, even after the expiry', async () => {
    const { asked, letGo } = gate.holdAnswers()
    const signup = await gate.flow.open(owner.serviceId)
    const approving = gate.flow.approve(signup.id)
    await asked
    gate.now.ms += sessionTtlMs
    expect((await poll(signup)).data).toMatchObject({ status: 'pending', approval: 'in_progress' })
    letGo()
    await approving
  })

  test('reports why the service did not create the account', async () => {
    gate.script.answer = responding(422)
    const signup = await gate.flow.open(owner.serviceId)
    await expect(gate.flow.approve(signup.id)).rejects.toThrow('gate.session_already_resolved')
    expect((await poll(signup)).data).toMatchObject({
      status: 'rejected',
      reason: 'integrator_failed',
      problem: 'The service answered with status 422.',
    })
  })

  test('returns 410 after the expiry without a decision', async () => {
    const signup = await open()
    gate.now.ms += sessionTtlMs
    expect((await poll(signup)).outcome).toBe('410 gate.session_expired')
  })

  test('returns 410 without the data key of the credentials, and the service is not called again', async () => {
    const signup = await gate.flow.signUp(owner.serviceId)
    await gate.pool.query('truncate tidegate.gate_vault')
    for (const lateMs of [0, deliveryTtlMs]) {
      gate.now.ms += lateMs
      await expireOverdue(gate.parts)
      const { outcome, error } = await poll(signup)
      expect(outcome).toBe('410 gate.delivery_consumed')
      expect(error.message).toContain('their key is gone')
    }
    expect(gate.sentTo(signup.id)).toHaveLength(1)
  })

  test('returns 410 if the data key was lost before the approval was recorded', async () => {
    const { ensure } = gate.parts.vault
    vi.spyOn(gate.parts.vault, 'ensure').mockImplementationOnce(async (id) => {
      const key = await ensure(id)
      await gate.pool.query('truncate tidegate.gate_vault')
      return key
    })
    const signup = await gate.flow.open(owner.serviceId)
    await gate.flow.approve(signup.id)
    const { outcome, error } = await poll(signup)
    expect(outcome).toBe('410 gate.delivery_consumed')
    expect(error.message).toContain('their key is gone')
  })
})

describe('consent', () => {
  test('returns a new approve token each time', async () => {
    const { id } = await open()
    expect(await gate.flow.approveToken(id)).not.toBe(await gate.flow.approveToken(id))
  })

  const refused = '403 auth.origin_not_allowed'
  test.each([
    [{ origin: publicUrl }, '200'],
    [{ origin: 'https://evil.example' }, refused],
    [{ origin: `${publicUrl}.evil.example` }, refused],
    [{ origin: 'null' }, refused],
    [{ origin: 'null', 'sec-fetch-site': 'same-origin' }, '200'],
    [{ 'sec-fetch-site': 'cross-site' }, refused],
    [{ 'sec-fetch-site': 'none' }, '200'],
  ])('is readable only by our own page: %o', async (headers, expected) => {
    const { id } = await open()
    const answer = await consent(id, headers)
    expect(answer.outcome).toBe(expected)
    expect(answer.headers['access-control-allow-origin']).toBeUndefined()
  })
})

describe('cancel', () => {
  test.each(['text/plain;charset=UTF-8', 'application/json', 'application/octet-stream', ''])(
    'ignores a body of type %j',
    async (type) => {
      const { id } = await open()
      const { statusCode } = await gate.app.inject({
        method: 'POST',
        url: `/v1/gate/sessions/${id}/cancel`,
        headers: type === '' ? {} : { 'content-type': type },
        payload: '{not json',
      })
      expect(statusCode).toBe(200)
    },
  )

  test('stores nothing for a request that has no effect', async () => {
    const waiting = await open()
    const ip = freshAddress()
    const sent = async (id: string, n: number) =>
      (
        await gate.ask(`sessions/${id}/cancel`, {
          method: 'POST',
          ip,
          headers: { 'idempotency-key': `key ${n}` },
        })
      ).outcome
    const kept = await rowsKept()
    const unknown = gate.newId('gate')
    for (let n = 0; n < 70; n++) expect(await sent(unknown, n)).toBe('404 gate.session_not_found')
    expect(await rowsKept()).toEqual(kept)
    for (let n = 0; n < 70; n++) expect(await sent(waiting.id, n)).toBe('200')
    expect(await rowsKept()).toEqual({ ...kept, limits: (kept?.limits ?? 0) + 1 })
    expect(await gate.count('GateSessionRejected', waiting.id)).toBe(1)
  })

  test('by a closing page is recorded, unless the page was opened elsewhere or is opened again', async () => {
    const { id } = await open()
    const tokens = [await gate.flow.approveToken(id), await gate.flow.approveToken(id)]
    const close = (approve_token?: string) => cancel(id, '?closing=1', { approve_token })
    const isClosing = async () => (await pageClosedForMs(gate.pool, id)) !== null
    expect((await close(tokens[0])).data.status).toBe('pending')
    expect(await isClosing()).toBe(false)
    await close(tokens[1])
    expect(await isClosing()).toBe(true)
    await consent(id)
    expect(await isClosing()).toBe(false)
    expect((await cancel(id)).data.status).toBe('rejected')
    expect((await close()).data.status).toBe('rejected')
  })
})

describe('ack', () => {
  test('ends the delivery and deletes its key before it responds', async () => {
    const signup = await gate.flow.signUp(owner.serviceId)
    const invented = { ...signup, ackToken: generateToken('gtack', randomBytes) }
    expect((await ack(invented)).outcome).toBe('403 gate.delivery_ack_invalid')
    expect((await ack(signup)).outcome).toBe('200')
    expect(await gate.parts.vault.find(signup.id)).toBeUndefined()
    expect((await gate.session(signup.id))?.delivery_sealed).toBeNull()
    expect((await poll(signup)).outcome).toBe('410 gate.delivery_consumed')
    expect((await ack(signup)).outcome).toBe('410 gate.delivery_consumed')
  })

  test('succeeds if the key cannot be deleted now, and the purge deletes it', async () => {
    const signup = await gate.flow.signUp(owner.serviceId)
    const remove = vi.spyOn(gate.parts.vault, 'remove').mockRejectedValueOnce(new Error('away'))
    expect((await ack(signup)).outcome).toBe('200')
    remove.mockRestore()
    expect(await gate.parts.vault.find(signup.id)).toBeDefined()
    await purgeGate(gate.parts)
    expect(await gate.parts.vault.find(signup.id)).toBeUndefined()
  })

  test('succeeds without the key, because the agent has stored the credentials', async () => {
    const signup = await gate.flow.signUp(owner.serviceId)
    await gate.pool.query('truncate tidegate.gate_vault')
    expect((await ack(signup)).outcome).toBe('200')
  })
})

test('nothing is counted or stored for made-up tokens or tokens of another session', async () => {
  const [signup, stranger] = [await open(), await open()]
  const kept = await rowsKept()
  for (let n = 0; n < 40; n++) {
    const invented = generateToken('gtpoll', randomBytes)
    for (const key of [invented, stranger.pollToken])
      for (const method of ['GET', 'POST'] as const) {
        const path = `sessions/${signup.id}${method === 'POST' ? '/ack' : ''}`
        expect((await gate.ask(path, { method, key })).status).toBe(401)
      }
  }
  expect(await rowsKept()).toEqual(kept)
})
