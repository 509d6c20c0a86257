import { expect, test } from 'vitest'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { generateDeliveryKeys } from '../../../infra/wire/delivery-envelope.ts'
import { registration } from '../../support/gate-world.ts'
import type { Send } from '../../support/send.ts'
import { useGateApi } from './gate-api.ts'

const gate = await useGateApi()
const owner = await gate.owner()
const signup = await gate.flow.signUp(owner.serviceId)

const { delivery } = generateDeliveryKeys()
type Request = Pick<Send, 'key' | 'ip' | 'body'> & { path: string }

const requests: [DomainEvent['type'], () => Promise<Request> | Request][] = [
  [
    'GateServiceRegistered',
    () => {
      const { organizationId: _, environment: __, ...body } = registration(owner)
      return { path: 'services', key: owner.secretKey, body: { ...body, id: 'twice' } }
    },
  ],
  [
    'GateSessionOpened',
    () => {
      const body = { service_id: owner.serviceId, account_name: 'Robin', delivery }
      return { path: 'sessions', ip: '198.51.100.8', body }
    },
  ],
  [
    'GateDeliveryAcknowledged',
    () => {
      const { id, pollToken: key, ackToken: ack_token } = signup
      return { path: `sessions/${id}/ack`, key, body: { ack_token } }
    },
  ],
  [
    'LoginSessionOpened',
    () => {
      const { agentToken: key } = signup
      return { path: 'login-sessions', key, body: { service_id: owner.serviceId } }
    },
  ],
  [
    'LoginCodeConsumed',
    async () => {
      const code = await gate.flow.loginCode(owner.serviceId, signup.agentToken ?? '')
      return { path: 'login-sessions/consume', key: owner.secretKey, body: { code } }
    },
  ],
]

test.each(requests)(
  '%s takes effect once and returns the same response if the first response to its Idempotency-Key was lost',
  async (type, requestOf) => {
    const { path, ...request } = await requestOf()
    const headers = { 'idempotency-key': type }
    const send = () => gate.ask(path, { ...request, method: 'POST', headers })
    const count = async () => (await gate.events()).filter((event) => event.type === type).length
    const before = await count()
    const first = await send()
    await gate.loseAnswers()
    gate.now.ms += 1000
    expect(await send()).toMatchObject({ status: first.status, data: first.data })
    expect(first.status).toBeLessThan(300)
    expect(await count()).toBe(before + 1)
  },
)

test('an Idempotency-Key of a signup belongs to one IP address', async () => {
  const body = { service_id: owner.serviceId, account_name: 'Robin', delivery }
  const headers = { 'idempotency-key': 'shared' }
  const ids = await Promise.all(
    ['198.51.100.9', '203.0.113.9'].map(
      async (ip) => (await gate.post('sessions', body, { ip, headers })).data.id,
    ),
  )
  expect(new Set(ids).size).toBe(2)
})
