import { expect, test } from 'vitest'
import { person } from '../../../support/console.ts'
import { day } from '../fixtures.ts'
import { useGateApi } from '../gate-api.ts'

const gate = await useGateApi()

interface Account {
  id: string
  account_name: string | null
  token: { status: string; last_used_at: string } | null
}

async function accountsOf(secretKey: string): Promise<Account[]> {
  return (await gate.ask('agent-accounts', { key: secretKey })).data
}
const revoke = (id: string, key: string) =>
  gate.ask(`agent-accounts/${id}/token`, { method: 'DELETE', key })

test('lists the accounts of the organization page by page, newest first', async () => {
  const owner = await gate.owner()
  const ids: string[] = []
  // Two accounts of the same millisecond, too.
  for (const waitMs of [0, 0, 5, 5, 5]) {
    gate.now.ms += waitMs
    ids.push((await gate.flow.signUp(owner.serviceId)).gateAccountId)
  }
  await gate.flow.open(owner.serviceId)
  const listed: string[] = []
  let query = 'agent-accounts?limit=2'
  for (;;) {
    const { body } = await gate.ask(query, { key: owner.secretKey })
    listed.push(...body.data.map(({ id }: Account) => id))
    if (!body.pagination.has_more) break
    query = `agent-accounts?limit=2&cursor=${body.pagination.next_cursor}`
  }
  expect(listed).toHaveLength(5)
  expect(listed.slice(0, 3)).toEqual(ids.slice(2).toReversed())
  expect(listed.slice(3).toSorted()).toEqual(ids.slice(0, 2).toSorted())
})

test('shows the status of the token, and no token for a service without a dashboard', async () => {
  const owner = await gate.owner()
  const { gateAccountId, agentToken } = await gate.flow.signUp(owner.serviceId)
  const at = new Date(gate.now.ms).toISOString()
  expect(await accountsOf(owner.secretKey)).toEqual([
    {
      object: 'gate_agent_account',
      id: gateAccountId,
      service_id: owner.serviceId,
      account_name: 'Robin',
      created_at: at,
      token: {
        status: 'active',
        last_used_at: at,
        expires_at: new Date(gate.now.ms + 90 * day).toISOString(),
      },
    },
  ])
  gate.now.ms += 2 * day
  const body = { agent_token: agentToken }
  await gate.post('agent-tokens/verify', body, { key: owner.secretKey })
  const usedAt = new Date(gate.now.ms).toISOString()
  expect(await accountsOf(owner.secretKey)).toMatchObject([{ token: { last_used_at: usedAt } }])
  gate.now.ms += 90 * day
  expect(await accountsOf(owner.secretKey)).toMatchObject([{ token: { status: 'expired' } }])

  const plain = await gate.owner({ fields: { dashboard_login_url: null } })
  await gate.flow.signUp(plain.serviceId)
  expect(await accountsOf(plain.secretKey)).toMatchObject([{ token: null }])
  const [account] = await accountsOf(plain.secretKey)
  expect((await revoke(account?.id ?? '', plain.secretKey)).outcome).toBe('404 request.not_found')
})

test('hides the name of an erased account', async () => {
  const owner = await gate.owner()
  const { gateAccountId } = await gate.flow.signUp(owner.serviceId)
  const url = `/v1/organizations/${owner.organizationId}/gate-accounts/${gateAccountId}`
  expect((await gate.send({ method: 'DELETE', url, key: owner.secretKey })).status).toBe(200)
  expect(await accountsOf(owner.secretKey)).toMatchObject([
    { id: gateAccountId, account_name: null, token: { status: 'active' } },
  ])
})

test('revokes a token by its account, with its unused login codes', async () => {
  const owner = await gate.owner()
  const { id, gateAccountId, agentToken = '' } = await gate.flow.signUp(owner.serviceId)
  const other = await gate.flow.signUp(owner.serviceId)
  const code = await gate.flow.loginCode(owner.serviceId, agentToken)
  const byOwner = { key: owner.secretKey }
  const verify = async (token: string | undefined) =>
    (await gate.post('agent-tokens/verify', { agent_token: token }, byOwner)).data.valid
  expect(await verify(agentToken)).toBe(true)
  expect((await revoke(gateAccountId, owner.secretKey)).data).toMatchObject({
    id: gateAccountId,
    token: { status: 'revoked' },
  })
  expect(await verify(agentToken)).toBe(false)
  expect(await verify(other.agentToken)).toBe(true)
  const consumed = await gate.post('login-sessions/consume', { code }, byOwner)
  expect(consumed.outcome).toBe('410 gate.session_expired')
  expect((await revoke(gateAccountId, owner.secretKey)).outcome).toBe('200')
  expect(await gate.count('AgentTokenRevoked', id)).toBe(1)
})

test('keeps accounts and tokens from other organizations and environments', async () => {
  const owner = await gate.owner()
  const { gateAccountId, agentToken } = await gate.flow.signUp(owner.serviceId)
  const { revealedKey: testKey } = await gate.issue({
    ...owner,
    environment: 'test',
    scopes: ['*'],
  })
  const strangers = [(await gate.owner()).secretKey, testKey]
  for (const key of strangers) {
    expect(await accountsOf(key)).toEqual([])
    expect((await revoke(gateAccountId, key)).outcome).toBe('404 request.not_found')
  }
  const unknown = `gacct_${'0'.repeat(26)}`
  for (const id of [unknown, 'gacct_1', '%00'])
    expect((await revoke(id, owner.secretKey)).outcome).toBe('404 request.not_found')
  const scoped = async (scope: 'gate:services:read' | 'gate:agent_tokens:revoke') =>
    (await gate.issue({ ...owner, scopes: [scope] })).revealedKey
  const reader = await scoped('gate:services:read')
  const revoker = await scoped('gate:agent_tokens:revoke')
  expect((await revoke(gateAccountId, reader)).outcome).toBe('403 auth.insufficient_scope')
  const refused = await gate.ask('agent-accounts', { key: revoker })
  expect(refused.outcome).toBe('403 auth.insufficient_scope')
  const verified = await gate.post(
    'agent-tokens/verify',
    { agent_token: agentToken },
    { key: owner.secretKey },
  )
  expect(verified.data.valid).toBe(true)
})

test('an admin revokes in the console, and the audit log names the console session', async () => {
  const owner = await gate.owner()
  const { gateAccountId } = await gate.flow.signUp(owner.serviceId)
  const call = async (role: 'admin' | 'analyst', method: 'GET' | 'DELETE', path: string) => {
    const link = { organizationId: owner.organizationId, role, environments: ['live'] } as const
    const { headers } = await person(gate.app, gate.deps, link)
    const url = `/console/api/v1/gate/${path}`
    const environment = { 'tidegate-environment': 'live' }
    return gate.app.inject({ method, url, headers: { ...headers, ...environment } })
  }
  const path = `agent-accounts/${gateAccountId}/token`
  expect((await call('analyst', 'GET', 'agent-accounts')).json().data).toHaveLength(1)
  expect((await call('analyst', 'DELETE', path)).statusCode).toBe(403)
  expect((await call('admin', 'DELETE', path)).json().data.token.status).toBe('revoked')
  const url = `/v1/organizations/${owner.organizationId}/audit-log`
  const { body } = await gate.send({ url, key: owner.secretKey })
  expect(body.data).toContainEqual(
    expect.objectContaining({
      type: 'AgentTokenRevoked',
      subject_id: gateAccountId,
      actor: expect.objectContaining({ type: 'person' }),
    }),
  )
})
