import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { generateToken } from '../../../../infra/crypto/tokens.ts'
import { randomId } from '../../../../infra/ids.ts'
import { openEnvelope } from '../../../../infra/wire/delivery-envelope.ts'
import { deliveryTtlMs, sessionTtlMs } from '../../../../services/gate/sessions.ts'
import { closingFor } from '../../../../services/gate/store.ts'
import { purgeGate } from '../../../../services/gate/time-outs.ts'
import { freshAddress } from '../../../support/gate-flow.ts'
import { gateOwner } from '../../../support/gate-world.ts'
import { publicUrl } from '../../../support/service-app.ts'
import { type Opened, type Signups, startSignups } from './signup-app.ts'

let gate: Signups
beforeAll(async () => {
  gate = await startSignups()
})
afterAll(() => gate?.stop())

const poll = ({ id, poll_token }: Opened, token = poll_token) =>
  gate.send({ url: `/${id}`, key: token })
const consent = (id: string, headers?: Record<string, string>) =>
  gate.send({ url: `/${id}/consent`, ...(headers && { headers }) })
const cancel = (id: string, query = '') =>
  gate.send({ method: 'POST', url: `/${id}/cancel${query}` })
const ack = ({ id, poll_token: token }: Opened, body: unknown = {}) =>
  gate.send({ method: 'POST', url: `/${id}/ack`, key: token, ...(body !== undefined && { body }) })

/** What matters of an answer. */
async function of(answer: Promise<{ status: number; body: { error?: { code: string } } }>) {
  const { status, body } = await answer
  return body.error ? `${status} ${body.error.code}` : `${status}`
}

async function rowsKept(): Promise<{ limits: number; keys: number }> {
  const { rows } = await gate.pool.query<{ limits: number; keys: number }>(
    `select (select count(*)::int from tidegate.gate_limits) as limits,
       (select count(*)::int from tidegate.idempotency_keys) as keys`,
  )
  const [counted] = rows
  if (!counted) throw new Error('nothing was counted')
  return counted
}

describe('polling', () => {
  test('shows a session that waits, is being approved, and is approved', async () => {
    const opened = await gate.open()
    const { id, expires_at } = opened
    const pending = { object: 'gate_session', id, status: 'pending', expires_at }
    const first = await poll(opened)
    expect(first.headers['cache-control']).toBe('no-store')
    expect(first.body.data).toEqual(pending)
    const ackToken = await gate.approve(id)
    const { body } = await poll(opened)
    expect(body.data).toMatchObject({ id, status: 'approved', account_name: 'Robin' })
    expect(body.data.gate_account_id).toMatch(/^gacct_/)
    expect(body.data.docs_url).toBe(`${publicUrl}/docs`)
    const { integrator, gate: own } = body.data.delivery_bundle
    expect(openEnvelope(integrator, gate.keys.privateKey).outputs).toEqual({ ACME_KEY: 'secret' })
    expect(openEnvelope(own, gate.keys.privateKey).ack_token).toBe(ackToken)
    // As often as it takes.
    expect((await poll(opened)).body.data).toEqual(body.data)
  })

  test('says that an approval is under way, whatever the time', async () => {
    const opened = await gate.open()
    await gate.start(opened.id)
    gate.now.ms += sessionTtlMs
    expect((await poll(opened)).body.data).toMatchObject({
      status: 'pending',
      approval: 'in_progress',
    })
  })

  test('says that and why it was rejected', async () => {
    const opened = await gate.open()
    await cancel(opened.id)
    const { id, expires_at } = opened
    const rejected = {
      object: 'gate_session',
      id,
      status: 'rejected',
      expires_at,
      reason: 'declined',
    }
    expect((await poll(opened)).body.data).toEqual(rejected)
    const failed = await gate.open()
    await gate.start(failed.id)
    await gate.fail(failed.id)
    const problem = 'It did not answer.'
    expect((await poll(failed)).body.data).toMatchObject({ reason: 'integrator_failed', problem })
  })

  test('is over when nobody decided in time, also before that is an event', async () => {
    const opened = await gate.open()
    gate.now.ms += sessionTtlMs
    expect(await of(poll(opened))).toBe('410 gate.session_expired')
  })

  test('finds nothing after a day, and says why', async () => {
    const late = await gate.open()
    await gate.approve(late.id)
    gate.now.ms += deliveryTtlMs - 1
    expect(await of(poll(late))).toBe('200')
    gate.now.ms += 1
    const { status, body } = await poll(late)
    expect([status, body.error.code]).toEqual([410, 'gate.delivery_consumed'])
    expect(body.error.message).toMatch(/^Nobody acknowledged the credentials within 24 hours/)
  })

  test('needs the very token of the session', async () => {
    const [one, two] = [await gate.open(), await gate.open()]
    expect(await of(gate.send({ url: `/${one.id}` }))).toBe('401 auth.missing_api_key')
    expect(await of(poll(one, two.poll_token))).toBe('401 auth.invalid_api_key')
    expect(await of(poll(one, 'sk_live_x'))).toBe('401 auth.invalid_api_key')
    expect(await of(poll({ ...one, id: randomId('gate', gate.deps.random) }))).toBe(
      '404 gate.session_not_found',
    )
    expect(await of(gate.send({ url: '/gate_1', key: one.poll_token }))).toBe(
      '404 gate.session_not_found',
    )
  })

  test('is limited to 30 a minute for a token', async () => {
    const opened = await gate.open()
    for (let i = 0; i < 30; i++) expect((await poll(opened)).status).toBe(200)
    expect(await of(poll(opened))).toBe('429 gate.rate_limit')
    expect((await poll(await gate.open())).status).toBe(200)
  })
})

describe('consent', () => {
  test('shows what is decided about, each time with another token', async () => {
    const { id, expires_at, confirmation_code } = await gate.open()
    const { body, headers } = await consent(id)
    expect(headers['cache-control']).toBe('no-store')
    expect(body.data).toMatchObject({
      object: 'gate_consent',
      gate_session_id: id,
      kind: 'signup',
      status: 'pending',
      account_name: 'Robin',
      service: { id: 'tidegate', name: 'Tidegate' },
      approve_token: expect.stringMatching(/^gtapr_/),
      confirmation_code,
      expires_at,
    })
    expect(body.data.requested_by.ip_address).toMatch(/^10\./)
    expect((await consent(id)).body.data.approve_token).not.toBe(body.data.approve_token)
  })

  test('is for no page but ours', async () => {
    const { id } = await gate.open()
    const from = (headers: Record<string, string>) => of(consent(id, headers))
    const refused = '403 auth.origin_not_allowed'
    expect(await from({ origin: publicUrl })).toBe('200')
    expect(await from({ origin: 'https://evil.example' })).toBe(refused)
    expect(await from({ origin: 'null' })).toBe(refused)
    expect(await from({ origin: `${publicUrl}.evil.example` })).toBe(refused)
    expect(await from({ 'sec-fetch-site': 'cross-site' })).toBe(refused)
    expect(await from({ 'sec-fetch-site': 'none' })).toBe('200')
    expect(await from({ origin: 'null', 'sec-fetch-site': 'same-origin' })).toBe('200')
    expect(
      (await consent(id, { origin: publicUrl })).headers['access-control-allow-origin'],
    ).toBeUndefined()
  })

  test('has nothing to ask once the session is resolved or its time over', async () => {
    const [approved, rejected, late] = [await gate.open(), await gate.open(), await gate.open()]
    await gate.approve(approved.id)
    await cancel(rejected.id)
    const resolvedAs = (status: string) => ({
      code: 'gate.session_already_resolved',
      status: 409,
      details: {
        fields: [
          { name: 'status', issue: status },
          { name: 'kind', issue: 'signup' },
        ],
      },
    })
    expect((await consent(approved.id)).body.error).toMatchObject(resolvedAs('approved'))
    expect((await consent(rejected.id)).body.error).toMatchObject(resolvedAs('declined'))
    gate.now.ms += sessionTtlMs
    expect(await of(consent(late.id))).toBe('410 gate.session_expired')
    expect(await of(consent('gate_x'))).toBe('404 gate.session_not_found')
  })

  test('shows what the agent tells the service, if anything', async () => {
    const metadata = { plan: 'free', team: { size: 3 } }
    const body = {
      service_id: 'tidegate',
      account_name: 'Robin',
      metadata,
      delivery: gate.keys.delivery,
    }
    const opened = await gate.send({ method: 'POST', url: '', body })
    expect((await consent(opened.body.data.id)).body.data.metadata).toEqual(metadata)
    expect((await consent((await gate.open()).id)).body.data).not.toHaveProperty('metadata')
  })

  test('says that an approval is under way', async () => {
    const { id } = await gate.open()
    await gate.start(id)
    expect((await consent(id)).body.data).toMatchObject({
      status: 'pending',
      approval: 'in_progress',
    })
  })

  test('goes on for a service that was hidden after the signup began', async () => {
    const owner = await gateOwner(gate.deps)
    const { id } = await gate.open(owner.serviceId)
    await gate.setStatus(owner.organizationId, 'suspended')
    expect((await consent(id)).body.data.service.id).toBe(owner.serviceId)
  })

  test('is limited to 30 a minute for an address', async () => {
    const { id } = await gate.open()
    const get = () => gate.send({ url: `/${id}/consent`, ip: '198.51.100.1' })
    for (let i = 0; i < 30; i++) expect((await get()).status).toBe(200)
    expect(await of(get())).toBe('429 gate.rate_limit')
  })
})

describe('cancel', () => {
  test('rejects the session, again without effect', async () => {
    const { id } = await gate.open()
    const { status, body } = await cancel(id)
    expect([status, body.data]).toEqual([200, { object: 'gate_session', id, status: 'rejected' }])
    const since = (await gate.session(id))?.resolved_at
    gate.now.ms += 1000
    expect((await cancel(id)).body.data).toEqual(body.data)
    expect((await gate.session(id))?.resolved_at).toBe(since)
  })

  test('decides about nothing but a session that is pending, and nothing else counts or is kept', async () => {
    const [waiting, approved, late] = [await gate.open(), await gate.open(), await gate.open()]
    await gate.approve(approved.id)
    const ip = freshAddress()
    const from = (id: string, n = 0) =>
      of(
        gate.send({
          method: 'POST',
          url: `/${id}/cancel`,
          ip,
          headers: { 'idempotency-key': `key ${n}` },
        }),
      )
    const kept = await rowsKept()
    gate.decidedAbout.length = 0
    const unknown = randomId('gate', gate.deps.random)
    for (let n = 0; n < 70; n++) expect(await from(unknown, n)).toBe('404 gate.session_not_found')
    expect(await from(approved.id)).toBe('409 gate.session_already_resolved')
    expect(gate.decidedAbout).toEqual([])
    expect(await rowsKept()).toEqual(kept)
    for (let n = 0; n < 70; n++) expect(await from(waiting.id, n)).toBe('200')
    expect(gate.decidedAbout).toEqual([waiting.id])
    expect(await rowsKept()).toEqual({ ...kept, limits: kept.limits + 1 })
    gate.now.ms += sessionTtlMs
    expect(await from(late.id)).toBe('410 gate.session_expired')
    expect(gate.decidedAbout).toEqual([waiting.id])
  })

  test.each([
    'text/plain;charset=UTF-8',
    'application/json',
    'application/octet-stream',
    undefined,
  ])('ignores a body of type %s', async (type) => {
    const { id } = await gate.open()
    const headers = type === undefined ? {} : { 'content-type': type }
    const url = `/v1/gate/sessions/${id}/cancel`
    const { statusCode } = await gate.app.inject({
      method: 'POST',
      url,
      headers,
      payload: '{not json',
    })
    expect(statusCode).toBe(200)
  })

  test('takes back nothing that was approved or is being so', async () => {
    const [started, approved] = [await gate.open(), await gate.open()]
    await gate.start(started.id)
    await gate.approve(approved.id)
    for (const query of ['', '?closing=1']) {
      const refused = await cancel(started.id, query)
      expect([refused.status, refused.headers['retry-after']]).toEqual([409, '1'])
      expect(refused.body.error.code).toBe('gate.approval_in_progress')
      expect(await of(cancel(approved.id, query))).toBe('409 gate.session_already_resolved')
    }
    expect((await poll(approved)).body.data.status).toBe('approved')
  })

  test('comes too late once the time is over', async () => {
    const { id } = await gate.open()
    gate.now.ms += sessionTtlMs
    expect(await of(cancel(id))).toBe('410 gate.session_expired')
    expect(await of(cancel('gate_x'))).toBe('404 gate.session_not_found')
  })

  test('of a page that closes is only noted, and undone when it is opened again', async () => {
    const { id } = await gate.open()
    await consent(id)
    const { status, body } = await cancel(id, '?closing=1')
    expect([status, body.data]).toEqual([200, { object: 'gate_session', id, status: 'pending' }])
    expect(await closingFor(gate.pool, id)).not.toBeNull()
    await consent(id)
    expect(await closingFor(gate.pool, id)).toBeNull()
    expect((await cancel(id)).body.data.status).toBe('rejected')
    expect((await cancel(id, '?closing=1')).body.data.status).toBe('rejected')
  })

  test('of a page that was opened elsewhere since closes nothing', async () => {
    const { id } = await gate.open()
    const closing = (approve_token: string) =>
      gate.send({ method: 'POST', url: `/${id}/cancel?closing=1`, body: { approve_token } })
    const [first, second] = [await consent(id), await consent(id)]
    expect((await closing(first.body.data.approve_token)).body.data.status).toBe('pending')
    expect(await closingFor(gate.pool, id)).toBeNull()
    await closing(second.body.data.approve_token)
    expect(await closingFor(gate.pool, id)).not.toBeNull()
  })

  test('from another page does nothing', async () => {
    const opened = await gate.open()
    const headers = { origin: 'https://evil.example', 'content-type': 'text/plain' }
    const sent = gate.send({ method: 'POST', url: `/${opened.id}/cancel`, body: 'x', headers })
    expect(await of(sent)).toBe('403 auth.origin_not_allowed')
    expect((await poll(opened)).body.data.status).toBe('pending')
  })
})

describe('ack', () => {
  test('ends the delivery and deletes its key before it answers', async () => {
    const opened = await gate.open()
    const { id } = opened
    const ack_token = await gate.approve(id)
    const { status, headers, body } = await ack(opened, { ack_token })
    const acknowledged = {
      object: 'gate_session_delivery',
      gate_session_id: id,
      status: 'acknowledged',
    }
    expect([status, body.data, headers['cache-control']]).toEqual([200, acknowledged, 'no-store'])
    expect(await gate.parts.vault.find(id)).toBeUndefined()
    expect((await gate.session(id))?.delivery_sealed).toBeNull()
    expect(await of(poll(opened))).toBe('410 gate.delivery_consumed')
    expect(await of(ack(opened, { ack_token }))).toBe('410 gate.delivery_consumed')
  })

  test('succeeds once, however many try at once', async () => {
    const opened = await gate.open()
    const ack_token = await gate.approve(opened.id)
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => of(ack(opened, { ack_token }))),
    )
    expect(answers.filter((answer) => answer === '200')).toHaveLength(1)
    expect(answers.filter((answer) => answer === '410 gate.delivery_consumed')).toHaveLength(19)
    expect(await of(ack(opened, { ack_token }))).toBe('429 gate.rate_limit')
  })

  test('with the same Idempotency-Key is told that it succeeded', async () => {
    const opened = await gate.open()
    const ack_token = await gate.approve(opened.id)
    const { id, poll_token: token } = opened
    const again = () =>
      gate.send({
        method: 'POST',
        url: `/${id}/ack`,
        key: token,
        body: { ack_token },
        headers: { 'idempotency-key': 'once' },
      })
    const first = await again()
    expect(first.status).toBe(200)
    expect((await again()).body).toEqual(first.body)
    await gate.loseAnswers()
    expect((await again()).body.data).toEqual(first.body.data)
    expect(await of(ack(opened, { ack_token }))).toBe('410 gate.delivery_consumed')
    expect(await gate.count('GateDeliveryAcknowledged', id)).toBe(1)
  })

  test('succeeds where the key cannot be deleted now: the purge deletes it', async () => {
    const opened = await gate.open()
    const ack_token = await gate.approve(opened.id)
    const remove = vi.spyOn(gate.parts.vault, 'remove').mockRejectedValueOnce(new Error('away'))
    try {
      expect(await of(ack(opened, { ack_token }))).toBe('200')
    } finally {
      remove.mockRestore()
    }
    expect(await of(poll(opened))).toBe('410 gate.delivery_consumed')
    expect(await gate.parts.vault.find(opened.id)).toBeDefined()
    await purgeGate(gate.parts)
    expect(await gate.parts.vault.find(opened.id)).toBeUndefined()
  })

  test('needs the ack token of the delivery', async () => {
    const [approved, pending, late] = [await gate.open(), await gate.open(), await gate.open()]
    const ack_token = await gate.approve(approved.id)
    const wrong = '403 gate.delivery_ack_invalid'
    expect(await of(ack(approved, undefined))).toBe(wrong)
    expect(await of(ack(approved, {}))).toBe(wrong)
    expect(await of(ack(approved, { ack_token: 'gtack_x' }))).toBe(wrong)
    expect(await of(ack(approved, { ack_token: generateToken('gtack', gate.deps.random) }))).toBe(
      wrong,
    )
    expect(await of(ack(approved, { ack_token: 1 }))).toBe('422 gate.validation_failed')
    expect(await of(ack(approved, { ack_token, more: 1 }))).toBe('422 gate.validation_failed')
    expect(await of(ack(pending, { ack_token }))).toBe(wrong)
    expect(await of(ack({ ...approved, poll_token: late.poll_token }, { ack_token }))).toBe(
      '401 auth.invalid_api_key',
    )
    gate.now.ms += deliveryTtlMs
    expect(await of(ack(approved, { ack_token }))).toBe('410 gate.delivery_consumed')
  })
})

test('of tokens that are invented or of another session nothing is counted or kept', async () => {
  const [one, two] = [await gate.open(), await gate.open()]
  const unknown = { ...one, id: randomId('gate', gate.deps.random) }
  const kept = await rowsKept()
  for (let n = 0; n < 40; n++) {
    const poll_token = generateToken('gtpoll', gate.deps.random)
    for (const ask of [poll, ack]) {
      expect(await of(ask({ ...one, poll_token }))).toBe('401 auth.invalid_api_key')
      expect(await of(ask({ ...two, poll_token: one.poll_token }))).toBe('401 auth.invalid_api_key')
      expect(await of(ask(unknown))).toBe('404 gate.session_not_found')
    }
  }
  expect(await rowsKept()).toEqual(kept)
  expect(await of(poll(one))).toBe('200')
  expect(await of(ack(one))).toBe('403 gate.delivery_ack_invalid')
})

test('a login is shown for consent and cancelled as a signup is, and has nothing to poll', async () => {
  const id = await gate.openLogin()
  const stranger = await gate.open()
  expect((await consent(id)).body.data).toMatchObject({ kind: 'login', gate_session_id: id })
  expect(await of(poll({ ...stranger, id }))).toBe('404 gate.session_not_found')
  expect(await of(ack({ ...stranger, id }, { ack_token: 'x' }))).toBe('404 gate.session_not_found')
  expect((await cancel(id)).body.data).toEqual({
    object: 'gate_login_session',
    id,
    status: 'rejected',
  })
})
