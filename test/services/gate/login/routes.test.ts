import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { generateToken } from '../../../../infra/crypto/tokens.ts'
import { changeService, disableService } from '../../../../services/gate/registry/commands.ts'
import { codeTtlMs } from '../../../../services/gate/sessions.ts'
import { issueApiKey } from '../../../../services/organizations/commands.ts'
import { day } from '../given.ts'
import type { GateOwner } from '../../../support/gate-world.ts'
import { setStatus } from '../../../support/organization-status.ts'
import { type Accounts, startAccounts } from '../accounts/accounts-app.ts'

let gate: Accounts
let owner: GateOwner
beforeAll(async () => {
  gate = await startAccounts()
  owner = await gate.owner()
})
afterAll(() => gate?.stop())

const create = (
  key: string,
  {
    service_id = owner.serviceId,
    headers = {},
  }: { service_id?: unknown; headers?: Record<string, string> } = {},
) => gate.post('login-sessions', { key, body: { service_id }, headers })
const consume = (
  code: unknown,
  { key = owner.secretKey, headers = {} }: { key?: string; headers?: Record<string, string> } = {},
) => gate.post('login-sessions/consume', { key, body: { code }, headers })
const codeOf = ({ status, body }: { status: number; body: { error: { code: string } } }) =>
  `${status} ${body.error.code}`
const meta = { request_id: expect.stringMatching(/^req_/) }

const pathOf = ({ organizationId, environment, serviceId }: GateOwner) => ({
  organizationId,
  environment,
  serviceId,
})

/** A login that a person approved, and its code. */
async function approved(of = owner) {
  const account = await gate.account(of)
  const { body } = await create(account.token, { service_id: of.serviceId })
  return { ...account, loginId: String(body.data.id), code: await gate.approve(body.data.id) }
}

describe('create', () => {
  test('opens a login that a person has to approve', async () => {
    const { token, gateAccountId } = await gate.account(owner)
    const answer = await create(token, { headers: { 'user-agent': 'agent/1' } })
    const { id, ...data } = answer.body.data
    expect({ ...answer, body: { data, meta: answer.body.meta } }).toMatchObject({
      status: 201,
      headers: { 'cache-control': 'no-store' },
      body: {
        data: {
          object: 'gate_login_session',
          status: 'pending',
          consent_url: `https://tidegate.example/gate/consent/${id}`,
          expires_at: new Date(gate.now.ms + 15 * 60_000).toISOString(),
        },
        meta,
      },
    })
    expect(await gate.login(id)).toMatchObject({
      kind: 'login',
      status: 'pending',
      gate_account_id: gateAccountId,
      account_name: 'Robin',
      requested_ip: '127.0.0.1',
      requested_user_agent: 'agent/1',
      organization_id: owner.organizationId,
      environment: 'live',
    })
  })

  test('is a use of the token', async () => {
    const { token } = await gate.account(owner)
    gate.now.ms += 2 * day
    expect((await create(token)).status).toBe(201)
    expect(await gate.stored(token)).toMatchObject({ expires_at: gate.now.ms + 90 * day })
  })

  test('needs a good token of the service', async () => {
    const [revoked, expired] = [await gate.account(owner), await gate.account(owner)]
    await gate.post('agent-tokens/revoke', {
      key: owner.secretKey,
      body: { agent_token: revoked.token },
    })
    const other = await gate.owner()
    const elsewhere = await gate.account(other)
    const bad = [
      revoked.token,
      generateToken('agt', randomBytes),
      'agt_',
      owner.secretKey,
      elsewhere.token,
    ]
    for (const token of bad) expect(codeOf(await create(token))).toBe('401 auth.invalid_api_key')
    gate.now.ms += 90 * day
    expect(codeOf(await create(expired.token))).toBe('401 auth.invalid_api_key')
    const without = await gate.post('login-sessions', { body: { service_id: owner.serviceId } })
    expect(codeOf(without)).toBe('401 auth.missing_api_key')
    expect(without.headers['cache-control']).toBe('no-store')
  })

  test('does not find a service that is unknown, hidden, disabled, suspended or without a dashboard', async () => {
    const { token } = await gate.account(owner)
    for (const service_id of ['unknown', 'tidegate', '', '\u0000', 'A'.repeat(5000)]) {
      expect(codeOf(await create(token, { service_id }))).toBe('404 request.not_found')
    }
    const closings: ((of: GateOwner) => Promise<unknown>)[] = [
      (of) => changeService(gate.deps, { ...pathOf(of), discoverable: false }),
      (of) => changeService(gate.deps, { ...pathOf(of), dashboard_login_url: null }),
      (of) => disableService(gate.deps, of),
      (of) => setStatus(gate.deps, of.organizationId, 'suspended'),
    ]
    for (const close of closings) {
      const closed = await gate.owner()
      const account = await gate.account(closed)
      await close(closed)
      expect(codeOf(await create(account.token, { service_id: closed.serviceId }))).toBe(
        '404 request.not_found',
      )
    }
  })

  test('refuses a body that does not fit', async () => {
    const { token } = await gate.account(owner)
    const details = { parameter_set: 'gate_login_session_create' }
    for (const body of [{}, { service_id: 1 }, { service_id: owner.serviceId, more: 1 }]) {
      const answer = await gate.post('login-sessions', { key: token, body })
      expect(answer).toMatchObject({
        status: 422,
        body: { error: { code: 'gate.validation_failed', details } },
      })
    }
  })

  test('repeated with an Idempotency-Key opens one login, also when its answer was lost', async () => {
    const { token } = await gate.account(owner)
    const headers = { 'idempotency-key': 'the same' }
    const first = await create(token, { headers })
    const replayed = await create(token, { headers })
    expect(replayed.body).toEqual(first.body)
    expect(replayed.headers['idempotent-replayed']).toBe('true')
    await gate.loseAnswers()
    gate.now.ms += 1000
    expect((await create(token, { headers })).body.data).toEqual(first.body.data)
    expect(await gate.count('LoginSessionOpened', first.body.data.id)).toBe(1)
    // Another account's key is another.
    const other = await create((await gate.account(owner)).token, { headers })
    expect(other.body.data.id).not.toBe(first.body.data.id)
  })

  test('takes 10 logins a minute of one token', async () => {
    const { token } = await gate.account(owner)
    const answers = await Promise.all(Array.from({ length: 11 }, () => create(token)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array(10).fill(201), 429])
  })
})

describe('consume', () => {
  test('tells the service once whose login a person approved', async () => {
    const { code, loginId, gateAccountId } = await approved()
    const answer = await consume(code)
    const data = {
      object: 'gate_dashboard_login',
      gate_account_id: gateAccountId,
      account_name: 'Robin',
    }
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'cache-control': 'no-store' },
      body: { data, meta },
    })
    expect(codeOf(await consume(code))).toBe('410 gate.session_already_resolved')
    gate.now.ms += codeTtlMs
    expect(codeOf(await consume(code))).toBe('410 gate.session_already_resolved')
    expect(await gate.count('LoginCodeConsumed', loginId)).toBe(1)
  })

  test('of many at once gives the account out once', async () => {
    const { code, loginId } = await approved()
    const answers = await Promise.all(Array.from({ length: 24 }, () => consume(code)))
    const used = '410 gate.session_already_resolved'
    const codes = answers.map((answer) => (answer.status === 200 ? '200' : codeOf(answer)))
    expect(codes.toSorted()).toEqual(['200', ...Array(23).fill(used)])
    expect(await gate.count('LoginCodeConsumed', loginId)).toBe(1)
  })

  test('knows no code that is old, unknown or of others', async () => {
    const { code } = await approved()
    const { organizationId } = owner
    const asked = { organizationId, environment: 'test', name: 'Key', type: 'secret' } as const
    const { revealedKey: testKey } = await issueApiKey(gate.deps, {
      ...asked,
      scopes: ['*'],
      by: 'operator',
    })
    const answers = [
      await consume(code, { key: (await gate.owner()).secretKey }),
      await consume(code, { key: testKey }),
      await consume(''),
      await consume(`${code}\u0000`),
      await consume(generateToken('gtcode', randomBytes)),
    ]
    expect(answers.map(codeOf)).toEqual(Array(5).fill('410 gate.session_expired'))
    gate.now.ms += codeTtlMs
    expect(codeOf(await consume(code))).toBe('410 gate.session_expired')
  })

  test('lets no agent in whose token was revoked after the approval', async () => {
    const { code, token } = await approved()
    await gate.post('agent-tokens/revoke', { key: owner.secretKey, body: { agent_token: token } })
    expect(codeOf(await consume(code))).toBe('410 gate.session_expired')
  })

  test('works while the service is disabled: the login was begun before', async () => {
    const of = await gate.owner()
    const { code } = await approved(of)
    await disableService(gate.deps, of)
    expect((await consume(code, { key: of.secretKey })).status).toBe(200)
  })

  test('repeated with an Idempotency-Key tells the same, also when its answer was lost', async () => {
    const { code, loginId } = await approved()
    const headers = { 'idempotency-key': 'consume once' }
    const first = await consume(code, { headers })
    expect((await consume(code, { headers })).body).toEqual(first.body)
    await gate.loseAnswers()
    expect((await consume(code, { headers })).body.data).toEqual(first.body.data)
    expect(codeOf(await consume(code))).toBe('410 gate.session_already_resolved')
    expect(await gate.count('LoginCodeConsumed', loginId)).toBe(1)
  })

  test('refuses what does not fit, and a key without the scope', async () => {
    const { code } = await approved()
    const details = { parameter_set: 'gate_login_session_consume' }
    for (const body of [{}, { code: 1 }, { code, more: 1 }]) {
      const answer = await gate.post('login-sessions/consume', { key: owner.secretKey, body })
      expect(answer).toMatchObject({
        status: 422,
        body: { error: { code: 'gate.validation_failed', details } },
      })
    }
    const { organizationId } = owner
    const asked = { organizationId, environment: 'live', name: 'Key', type: 'secret' } as const
    const { revealedKey: key } = await issueApiKey(gate.deps, {
      ...asked,
      scopes: ['gate:agent_tokens:verify'],
      by: 'operator',
    })
    expect((await consume(code, { key })).status).toBe(403)
    expect((await consume(code)).status).toBe(200)
  })

  test('takes 30 attempts a minute with one code', async () => {
    const code = generateToken('gtcode', randomBytes)
    const answers = await Promise.all(Array.from({ length: 31 }, () => consume(code)))
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(1)
  })
})
