import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { generateDeliveryKeys } from '../../../../infra/wire/delivery-envelope.ts'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { eventTopics } from '../../../../schemas/events.ts'
import { openSignup } from '../../../../services/gate/signup/commands.ts'
import { endsAsked } from '../../../support/ends-asked.ts'
import type { GateOwner } from '../../../support/gate-world.ts'
import { type Account, type Accounts, startAccounts } from './accounts-app.ts'

// The log has what the read model does not show: it was lost, or its last commits were.

let gate: Accounts
let owner: GateOwner
let account: Account
beforeAll(async () => {
  gate = await startAccounts()
})
beforeEach(async () => {
  owner = await gate.owner()
  account = await gate.account(owner)
})
afterAll(() => gate?.stop())

const post = (path: string, body: object) => gate.post(path, { key: owner.secretKey, body })
const createLogin = () =>
  gate.post('login-sessions', { key: account.token, body: { service_id: owner.serviceId } })

const revoke = () =>
  gate.write(owner, {
    type: 'AgentTokenRevoked',
    data: {
      gate_session_id: account.gateSessionId,
      gate_account_id: account.gateAccountId,
      revoked_at: gate.now.ms,
    },
  })

const asked = () => endsAsked(gate.log, { topic: eventTopics.AgentTokenRevoked, times: 4 })

/** Not one, which may be in the partition of what is missing; not more than decide at once. */
const severalTimes = <T>(ask: (n: number) => Promise<T>) =>
  Promise.all(Array.from({ length: 4 }, (_, n) => ask(n)))

test('no revoked token opens a login', async () => {
  // So that the log is asked by the decisions alone.
  expect((await createLogin()).status).toBe(201)
  let answers: Promise<{ status: number }[]> | undefined
  await gate.without(gateProjection, async () => {
    await revoke()
    const waiting = asked()
    answers = severalTimes(createLogin)
    await waiting
  })
  expect((await answers)?.map(({ status }) => status)).toEqual(Array(4).fill(401))
})

test('no code of a revoked token logs anyone in', async () => {
  const codes = await severalTimes(async () => gate.approve((await createLogin()).body.data.id))
  expect((await post('login-sessions/consume', { code: 'gtcode_' })).status).toBe(410)
  let answers: Promise<{ status: number }[]> | undefined
  await gate.without(gateProjection, async () => {
    await revoke()
    const waiting = asked()
    answers = Promise.all(codes.map((code) => post('login-sessions/consume', { code })))
    await waiting
  })
  expect((await answers)?.map(({ status }) => status)).toEqual(Array(4).fill(410))
})

test('nobody signs up for a service that was disabled', async () => {
  const { serviceId, organizationId, environment } = owner
  const { key_id, public_key } = generateDeliveryKeys().delivery
  const spec = {
    account_name: 'Robin',
    metadata: null,
    delivery_key_id: key_id,
    delivery_public_key: public_key,
    requested_ip: null,
    requested_user_agent: null,
    claim: null,
  }
  const open = () =>
    openSignup({ ...gate.parts, decide: gate.deps.decide }, { serviceId, spec }).then(
      () => 'open',
      (error) => error.code,
    )
  let answers: Promise<string[]> | undefined
  await gate.without(gateProjection, async () => {
    const data = { service_id: serviceId, organization_id: organizationId, environment }
    await gate.write(owner, {
      type: 'GateServiceDisabled',
      data: { ...data, disabled_at: gate.now.ms },
    })
    const waiting = asked()
    answers = severalTimes(open)
    await waiting
  })
  expect(await answers).toEqual(Array(4).fill('request.not_found'))
})

test('at a start nothing is said of tokens and codes until the read model shows what it once showed', async () => {
  const code = await gate.approve((await createLogin()).body.data.id)
  const other = await gate.account(owner)
  const questions = [
    () => post('agent-tokens/verify', { agent_token: account.token }),
    () => post('agent-tokens/revoke', { agent_token: other.token }),
    () => createLogin(),
    () => post('login-sessions/consume', { code }),
  ]
  const ask = async () => {
    const answers = await Promise.all(questions.map((question) => question()))
    return answers.map(
      ({ status, body }) => `${status} ${body?.error?.code ?? JSON.stringify(body?.data)}`,
    )
  }
  await gate.without(gateProjection, async () => {
    await revoke()
    gate.startAgain()
    expect(await ask()).toEqual(Array(4).fill('503 service.unavailable'))
  })
  expect(await ask()).toEqual([
    '200 {"valid":false}',
    '204 undefined',
    '401 auth.invalid_api_key',
    '410 gate.session_expired',
  ])
})
