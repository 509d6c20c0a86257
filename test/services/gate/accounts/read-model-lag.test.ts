import { beforeEach, expect, test } from 'vitest'
import type { DomainEvent } from '../../../../infra/event-store/event.ts'
import { createApp } from '../../../../infra/http/app.ts'
import { generateDeliveryKeys } from '../../../../infra/wire/delivery-envelope.ts'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { eventTopics } from '../../../../schemas/events.ts'
import { gateRoutes } from '../../../../services/gate/routes.ts'
import { validateResponses } from '../../../support/described.ts'
import { endsAsked } from '../../../support/ends-asked.ts'
import type { ApprovedSignup } from '../../../support/gate-flow.ts'
import type { GateOwner } from '../../../support/gate-world.ts'
import { publicUrl, sendTo } from '../../../support/send.ts'
import { useGateApi } from '../gate-api.ts'

// The log has events that the read model lacks, as after a restore of the database.

let owner: GateOwner
let account: ApprovedSignup
const gate = await useGateApi({ log: 'postgres' })
beforeEach(async () => {
  owner = await gate.owner()
  account = await gate.flow.signUp(owner.serviceId)
})

const byOwner = (path: string, body: object) => gate.post(path, body, { key: owner.secretKey })
const createLogin = () =>
  gate.post('login-sessions', { service_id: owner.serviceId }, { key: account.agentToken })
const loginCode = () => gate.flow.loginCode(owner.serviceId, account.agentToken ?? '')

const revoked = (): DomainEvent => ({
  type: 'AgentTokenRevoked',
  data: {
    gate_session_id: account.id,
    gate_account_id: account.gateAccountId,
    revoked_at: gate.now.ms,
  },
})

/**
 * Returns the responses to four requests that start while the read model lacks the event; one may be in its partition.
 */
async function outcomesBehind(
  event: DomainEvent,
  ask: (n: number) => Promise<{ outcome: string }>,
) {
  let answers: Promise<{ outcome: string }[]> | undefined
  await gate.without(gateProjection, async () => {
    await gate.write(owner, event)
    const waiting = endsAsked(gate.log, { topic: eventTopics.AgentTokenRevoked, times: 4 })
    answers = Promise.all(Array.from({ length: 4 }, (_, n) => ask(n)))
    await waiting
  })
  return (await answers)?.map(({ outcome }) => outcome)
}

test('a revoked token opens no login', async () => {
  // So that only the decisions query the log.
  await createLogin()
  expect(await outcomesBehind(revoked(), createLogin)).toEqual(
    Array(4).fill('401 auth.invalid_api_key'),
  )
})

test('the code of a revoked token logs nobody in', async () => {
  const codes = await Promise.all(Array.from({ length: 4 }, loginCode))
  const consume = (n: number) => byOwner('login-sessions/consume', { code: codes[n] })
  await byOwner('login-sessions/consume', { code: 'gtcode_' })
  expect(await outcomesBehind(revoked(), consume)).toEqual(
    Array(4).fill('410 gate.session_expired'),
  )
})

test('nobody can sign up for a disabled service', async () => {
  const { serviceId: service_id, organizationId: organization_id, environment } = owner
  const { delivery } = generateDeliveryKeys()
  const data = { service_id, organization_id, environment, disabled_at: gate.now.ms }
  const open = () => gate.post('sessions', { service_id, account_name: 'Robin', delivery })
  expect(await outcomesBehind({ type: 'GateServiceDisabled', data }, open)).toEqual(
    Array(4).fill('404 request.not_found'),
  )
})

test('at startup, tokens and codes are not verified until the read model has caught up', async () => {
  const code = await loginCode()
  const other = await gate.flow.signUp(owner.serviceId)
  const app = await createApp({ ...gate.base, publicUrl })
  validateResponses(app)
  if (gate.gate) await gateRoutes(app, { ...gate.accessControl, gate: gate.gate })
  const ask = async (path: string, body: object, key = owner.secretKey) => {
    const answer = await sendTo(app, { method: 'POST', url: `/v1/gate/${path}`, key, body })
    return `${answer.status} ${answer.body?.error?.code ?? JSON.stringify(answer.body?.data)}`
  }
  const askAll = () =>
    Promise.all([
      ask('agent-tokens/verify', { agent_token: account.agentToken }),
      ask('agent-tokens/revoke', { agent_token: other.agentToken }),
      ask('login-sessions', { service_id: owner.serviceId }, account.agentToken),
      ask('login-sessions/consume', { code }),
    ])
  await gate.without(gateProjection, async () => {
    await gate.write(owner, revoked())
    expect(await askAll()).toEqual(Array(4).fill('503 service.unavailable'))
  })
  expect(await askAll()).toEqual([
    '200 {"valid":false}',
    '204 undefined',
    '401 auth.invalid_api_key',
    '410 gate.session_expired',
  ])
  await app.close()
})
