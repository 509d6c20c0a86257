import { expect, test } from 'vitest'
import { day } from '../fixtures.ts'
import { useGateApi } from '../gate-api.ts'

const gate = await useGateApi()
const owner = await gate.owner()
const account = await gate.flow.signUp(owner.serviceId)

const create = (
  { agentToken: key } = account,
  {
    service_id = owner.serviceId,
    headers = {},
  }: { service_id?: string; headers?: Record<string, string> } = {},
) => gate.post('login-sessions', { service_id }, { key, headers })

test('an agent requests a login, which counts as a use of its token', async () => {
  gate.now.ms += 2 * day
  const { data } = await create(account, { headers: { 'user-agent': 'agent/1' } })
  expect(await gate.session(data.id)).toMatchObject({
    kind: 'login',
    status: 'pending',
    gate_account_id: account.gateAccountId,
    account_name: 'Robin',
    requested_ip: expect.stringMatching(/^10\./),
    requested_user_agent: 'agent/1',
    organization_id: owner.organizationId,
  })
  const verify = { agent_token: account.agentToken }
  const verified = await gate.post('agent-tokens/verify', verify, { key: owner.secretKey })
  expect(verified.data.expires_at).toBe(new Date(gate.now.ms + 90 * day).toISOString())
})

test.each(['tidegate', '', '\u0000', 'A'.repeat(5000)])(
  'an agent cannot request a login for the service %j',
  async (service_id) => {
    expect((await create(account, { service_id })).outcome).toBe('404 request.not_found')
  },
)

test('an Idempotency-Key belongs to one account', async () => {
  const headers = { 'idempotency-key': 'the same' }
  const other = await gate.flow.signUp(owner.serviceId)
  const ids = [await create(account, { headers }), await create(other, { headers })]
  expect(new Set(ids.map(({ data }) => data.id)).size).toBe(2)
})

test('only the service gets the account of an approved login, and only once', async () => {
  const code = await gate.flow.loginCode(owner.serviceId, account.agentToken ?? '')
  const consume = ({ secretKey: key } = owner) =>
    gate.post('login-sessions/consume', { code }, { key })
  expect((await consume(await gate.owner())).outcome).toBe('410 gate.session_expired')
  expect((await consume()).data).toEqual({
    object: 'gate_dashboard_login',
    gate_account_id: account.gateAccountId,
    account_name: 'Robin',
  })
  expect((await consume()).outcome).toBe('410 gate.session_already_resolved')
})
