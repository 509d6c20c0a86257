import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { randomId } from '../../../../infra/ids.ts'
import { sealToken } from '../../../../infra/wire/sealed-token.ts'
import { type Gate, startGate } from '../../../../services/gate/gate.ts'
import { gateRoutes } from '../../../../services/gate/routes.ts'
import { freshAddress } from '../../../support/gate-flow.ts'
import { handOffFor } from '../../../support/gate-proof.ts'
import type { GateOwner } from '../../../support/gate-world.ts'
import { createServiceApp } from '../../../support/service-app.ts'
import { type ApprovalWorld, account, openApprovalWorld, type Signup } from '../approval/world.ts'

interface Process {
  app: FastifyInstance
  gate: Gate
}

let world: ApprovalWorld
let owner: GateOwner
let one: Process
let other: Process

beforeAll(async () => {
  world = await openApprovalWorld()
  owner = await world.owner()
  one = await startProcess()
  other = await startProcess()
})
afterAll(async () => {
  for (const { app, gate } of [one, other]) {
    await app.close()
    await gate.stop()
  }
  await world.close()
})
beforeEach(() => {
  world.script.answer = account
})

async function startProcess(): Promise<Process> {
  const gate = startGate(world.options)
  const { app, context } = await createServiceApp(world, { trustedProxies: ['127.0.0.1'] })
  await gateRoutes(app, { ...context, gate })
  return { app, gate }
}

interface Sent {
  body?: object
  token?: string
  ip?: string
  by?: Process
}

async function send(
  method: 'GET' | 'POST',
  path: string,
  { body, token, ip = freshAddress(), by = one }: Sent = {},
) {
  const response = await by.app.inject({
    method,
    url: path === '' ? '/v1/gate/sessions' : `/v1/gate/sessions/${path}`,
    headers: { 'x-forwarded-for': ip, ...(token && { authorization: `Bearer ${token}` }) },
    ...(body && { payload: body }),
  })
  return { status: response.statusCode, body: response.json() }
}

async function approvalOf(id: string, verdict = 'human') {
  const consent = await send('GET', `${id}/consent`)
  const approve_token: string = consent.body.data.approve_token
  const payload = {
    session_id: randomId('sid', randomBytes),
    decision: {
      event_id: randomId('evt', randomBytes),
      verdict,
      risk_score: 12,
      evaluated_at: new Date(world.now.ms - 1000).toISOString(),
    },
    request: { url: `https://tidegate.example/gate/consent/${id}` },
    hand_off: handOffFor(approve_token),
  }
  return {
    approve_token,
    sealed_token: sealToken({ payload, secretHashes: [world.secretHash], random: randomBytes }),
  }
}

/** Somebody approves from another network; the answer. */
async function approvedElsewhere({ id }: Signup) {
  const body = await approvalOf(id)
  return { body, answer: await send('POST', `${id}/approve`, { body }) }
}

const supporting = () =>
  world.signup(owner, 'Robin', { claim: 'supported', requested_ip: '198.51.100.7' })
const tell = ({ id, pollToken: token }: Signup, code: string, by = one) =>
  send('POST', `${id}/claim`, { token, body: { code }, by })
const poll = ({ id, pollToken: token }: Signup) => send('GET', id, { token })
const wrong = (code: string) =>
  String((Number(code.replace(' ', '')) + 1) % 1_000_000).padStart(6, '0')
const refused = (status: number, code: string) => ({ status, body: { error: { code } } })

describe('where the person is in another network', () => {
  test('the page shows a code, and the service is asked once the agent has told it', async () => {
    const signup = await supporting()
    const { body, answer } = await approvedElsewhere(signup)
    expect(answer).toMatchObject({
      status: 200,
      body: { data: { status: 'pending', claim_code: expect.stringMatching(/^\d{3} \d{3}$/) } },
    })
    expect((await poll(signup)).body.data).toMatchObject({ status: 'pending', claim: 'waiting' })
    expect(world.sentTo(signup.id)).toEqual([])
    const told = await tell(signup, answer.body.data.claim_code)
    expect(told).toMatchObject({
      status: 200,
      body: { data: { object: 'gate_session', id: signup.id } },
    })
    expect(await send('POST', `${signup.id}/approve`, { body })).toMatchObject({
      status: 200,
      body: { data: { status: 'approved' } },
    })
    expect((await poll(signup)).body.data).toMatchObject({ status: 'approved' })
    expect(world.sentTo(signup.id)).toHaveLength(1)
    expect(await tell(signup, answer.body.data.claim_code)).toMatchObject({ status: 200 })
  })

  test('another process takes the code, and the page asks any of them again', async () => {
    const signup = await supporting()
    const { body, answer } = await approvedElsewhere(signup)
    const again = await send('POST', `${signup.id}/approve`, { body, by: other })
    expect(again.body.data).toEqual(answer.body.data)
    expect(await tell(signup, answer.body.data.claim_code.replace(' ', ''), other)).toMatchObject({
      status: 200,
    })
    expect(await world.count('GateSessionClaimed', signup.id)).toBe(1)
  })

  test('whoever else has the link is not shown the code', async () => {
    const signup = await supporting()
    await approvedElsewhere(signup)
    const consent = await send('GET', `${signup.id}/consent`)
    expect(consent.body.data).toMatchObject({ status: 'pending', claim: 'waiting' })
    const theirs = await approvalOf(signup.id)
    const { status, body } = await send('POST', `${signup.id}/approve`, { body: theirs })
    expect({ status, data: body.data }).toEqual({
      status: 200,
      data: { object: 'gate_session', id: signup.id, status: 'pending' },
    })
  })

  test('five wrong codes end it, and the service is never asked', async () => {
    const signup = await supporting()
    const { answer } = await approvedElsewhere(signup)
    const code: string = answer.body.data.claim_code
    for (let i = 0; i < 5; i++)
      expect(await tell(signup, wrong(code))).toMatchObject(refused(403, 'gate.claim_code_invalid'))
    expect(await tell(signup, code)).toMatchObject(refused(409, 'gate.session_already_resolved'))
    expect((await poll(signup)).body.data).toMatchObject({
      status: 'rejected',
      reason: 'claim_failed',
    })
    expect(world.sentTo(signup.id)).toEqual([])
  })

  test('what is no code is not counted, nor what is told before somebody has approved', async () => {
    const signup = await supporting()
    for (let i = 0; i < 6; i++)
      expect(await tell(signup, '123456')).toMatchObject(refused(403, 'gate.claim_code_invalid'))
    const { answer } = await approvedElsewhere(signup)
    for (let i = 0; i < 6; i++)
      expect(await tell(signup, 'K7QF-M2XD')).toMatchObject(refused(422, 'gate.validation_failed'))
    expect(await tell(signup, answer.body.data.claim_code)).toMatchObject({ status: 200 })
  })

  test('wrong codes at once are counted one by one', async () => {
    const signup = await supporting()
    const { answer } = await approvedElsewhere(signup)
    const code = wrong(answer.body.data.claim_code)
    await Promise.all(Array.from({ length: 12 }, (_, i) => tell(signup, code, i % 2 ? one : other)))
    expect(await world.count('GateSessionClaimFailed', signup.id)).toBe(5)
    expect(await world.find(signup.id)).toMatchObject({ status: 'rejected' })
  })

  test('the code is told with the poll token alone', async () => {
    const [signup, stranger] = [await supporting(), await supporting()]
    const { answer } = await approvedElsewhere(signup)
    const body = { code: answer.body.data.claim_code }
    const token = stranger.pollToken
    expect(await send('POST', `${signup.id}/claim`, { token, body })).toMatchObject({ status: 401 })
    expect(await send('POST', `${signup.id}/claim`, { body })).toMatchObject({ status: 401 })
  })

  test('an agent that says nothing of it goes on as before', async () => {
    const signup = await world.signup(owner, 'Robin', { requested_ip: '198.51.100.7' })
    const { answer } = await approvedElsewhere(signup)
    expect(answer).toMatchObject({ status: 200, body: { data: { status: 'approved' } } })
  })
})

test('in the network of the agent a person needs no code', async () => {
  const ip = '198.51.100.7'
  const signup = await supporting()
  const answer = await send('POST', `${signup.id}/approve`, {
    body: await approvalOf(signup.id),
    ip,
  })
  expect(answer).toMatchObject({ status: 200, body: { data: { status: 'approved' } } })
})

describe('where the verdict is not human', () => {
  test('the name of the account is needed, and lacking it takes none of the three tries', async () => {
    const ip = freshAddress()
    const signup = await world.signup(owner, 'Robin  Ł.')
    const body = await approvalOf(signup.id, 'inconclusive')
    for (const account_name of [undefined, 'Robin', undefined, 'robin', undefined])
      expect(
        await send('POST', `${signup.id}/approve`, { body: { ...body, account_name }, ip }),
      ).toMatchObject({
        status: 422,
        body: {
          error: {
            code: 'gate.validation_failed',
            details: { fields: [{ name: 'account_name' }] },
          },
        },
      })
    const named = { ...body, account_name: ' robin ł.' }
    expect(await send('POST', `${signup.id}/approve`, { body: named, ip })).toMatchObject({
      status: 200,
    })
  })

  test('a service that takes people alone takes no such approval', async () => {
    const strict = await world.owner({ fields: { minimum_verdict: 'human' } })
    const signup = await world.signup(strict)
    const body = { ...(await approvalOf(signup.id, 'inconclusive')), account_name: 'Robin' }
    expect(await send('POST', `${signup.id}/approve`, { body })).toMatchObject({
      status: 403,
      body: {
        error: { code: 'gate.svc_proof_invalid', details: { fields: [{ name: 'verdict' }] } },
      },
    })
    const human = await approvalOf(signup.id)
    expect(await send('POST', `${signup.id}/approve`, { body: human })).toMatchObject({
      status: 200,
    })
  })
})

test('a service that demands a claim takes no agent that cannot, and claims of people near by, too', async () => {
  const demanding = await world.owner({ fields: { claim_required: true } })
  const { delivery } = (await world.signup()).keys
  const create = { service_id: demanding.serviceId, account_name: 'Robin', delivery }
  const ip = freshAddress()
  expect(await send('POST', '', { body: create, ip })).toMatchObject({
    status: 422,
    body: { error: { details: { fields: [{ name: 'claim' }] } } },
  })
  const made = await send('POST', '', { body: { ...create, claim: 'supported' }, ip })
  expect(made).toMatchObject({ status: 201 })
  const { id } = made.body.data
  const answer = await send('POST', `${id}/approve`, { body: await approvalOf(id), ip })
  expect(answer.body.data).toMatchObject({ status: 'pending', claim_code: expect.any(String) })
})

test('the code is nowhere in the database', async () => {
  const signup = await supporting()
  const { answer } = await approvedElsewhere(signup)
  const code: string = answer.body.data.claim_code
  const { rows } = await world.pool.query<{ table: string }>(
    `select format('%I.%I', schemaname, tablename) as table from pg_tables
     where schemaname not in ('pg_catalog', 'information_schema')`,
  )
  for (const { table } of rows) {
    const found = await world.pool.query(
      `select from ${table} t where t::text like any(array['%' || $1 || '%', '%"' || $2 || '"%'])`,
      [code, code.replace(' ', '')],
    )
    expect(found.rowCount, table).toBe(0)
  }
})
