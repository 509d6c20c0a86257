import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { generateToken } from '../../../../infra/crypto/tokens.ts'
import { issueApiKey } from '../../../../services/organizations/commands.ts'
import { day } from '../given.ts'
import type { GateOwner } from '../../../support/gate-world.ts'
import { setStatus } from '../../../support/organization-status.ts'
import { type Account, type Accounts, startAccounts } from './accounts-app.ts'

let gate: Accounts
let owner: GateOwner
beforeAll(async () => {
  gate = await startAccounts()
  owner = await gate.owner()
})
afterAll(() => gate?.stop())

type Named = Pick<GateOwner, 'secretKey'>
const verify = (agent_token: unknown, { secretKey: key }: Named = owner) =>
  gate.post('agent-tokens/verify', { key, body: { agent_token } })
const revoke = (agent_token: unknown, { secretKey: key }: Named = owner) =>
  gate.post('agent-tokens/revoke', { key, body: { agent_token } })
const iso = (ms: number) => new Date(ms).toISOString()
const meta = { request_id: expect.stringMatching(/^req_/) }
const mistyped = ({ token }: Account) => token.slice(0, -1) + (token.endsWith('0') ? '1' : '0')

/** A key of the organization with these scopes alone. */
async function keyWith(scopes: string[], environment: 'live' | 'test' = 'live'): Promise<Named> {
  const { organizationId } = owner
  const asked = { organizationId, environment, name: 'Key', type: 'secret' } as const
  return {
    secretKey: (await issueApiKey(gate.deps, { ...asked, scopes, by: 'operator' })).revealedKey,
  }
}

describe('verify', () => {
  test('shows a good token with its account and how long it is good for', async () => {
    const { token, gateAccountId } = await gate.account(owner)
    const answer = await verify(token, await keyWith(['gate:agent_tokens:verify']))
    const { ms } = gate.now
    const data = { valid: true, gate_account_id: gateAccountId, status: 'active' }
    const times = { created_at: iso(ms), expires_at: iso(ms + 90 * day) }
    expect(answer).toMatchObject({ status: 200, body: { data: { ...data, ...times }, meta } })
    expect(answer.headers['cache-control']).toBe('no-store')
  })

  test('says no more than that of any other', async () => {
    const [good, revoked] = [await gate.account(owner), await gate.account(owner)]
    await revoke(revoked.token)
    const other = await gate.owner()
    const answers = [
      await verify(''),
      await verify('agt_'),
      await verify(`${good.token}\u0000`),
      await verify(mistyped(good)),
      await verify(generateToken('agt', randomBytes)),
      await verify(generateToken('gtcode', randomBytes)),
      await verify(owner.secretKey),
      await verify(revoked.token),
      await verify(good.token, other),
      await verify(good.token, await keyWith(['*'], 'test')),
    ]
    for (const { status, headers, body } of answers) {
      expect({ status, data: body.data }).toEqual({ status: 200, data: { valid: false } })
      expect(headers['cache-control']).toBe('no-store')
    }
  })

  test('refuses what is no question about a token', async () => {
    const { token } = await gate.account(owner)
    const details = { parameter_set: 'gate_agent_token_verify' }
    for (const body of [{}, { agent_token: 1 }, { agent_token: token, more: 1 }, []]) {
      const answer = await gate.post('agent-tokens/verify', { key: owner.secretKey, body })
      expect(answer).toMatchObject({
        status: 422,
        body: { error: { code: 'gate.validation_failed', details } },
      })
      expect(answer.headers['cache-control']).toBe('no-store')
    }
    expect((await gate.post('agent-tokens/verify', { body: { agent_token: token } })).status).toBe(
      401,
    )
    const { status, headers } = await verify(token, await keyWith(['gate:agent_tokens:revoke']))
    expect({ status, caching: headers['cache-control'] }).toEqual({
      status: 403,
      caching: 'no-store',
    })
  })

  test('renews a token once a day, as long as it is in use', async () => {
    const { token, gateSessionId } = await gate.account(owner)
    const start = gate.now.ms
    const shown = async () => (await verify(token)).body.data.expires_at
    gate.now.ms = start + day
    expect(await shown()).toBe(iso(start + 90 * day))
    gate.now.ms = start + day + 1
    expect(await shown()).toBe(iso(gate.now.ms + 90 * day))
    expect(await Promise.all(Array.from({ length: 8 }, shown))).toEqual(
      Array(8).fill(iso(gate.now.ms + 90 * day)),
    )
    expect(await gate.count('AgentTokenRenewed', gateSessionId)).toBe(1)
    gate.now.ms += 90 * day - 1
    expect(await shown()).toBe(iso(gate.now.ms + 90 * day))
    gate.now.ms += 90 * day
    expect((await verify(token)).body.data).toEqual({ valid: false })
    expect(await gate.count('AgentTokenRenewed', gateSessionId)).toBe(2)
  })

  test('of many at once renews a token once', async () => {
    const { token, gateSessionId } = await gate.account(owner)
    gate.now.ms += 2 * day
    const answers = await Promise.all(Array.from({ length: 16 }, () => verify(token)))
    const expected = iso(gate.now.ms + 90 * day)
    expect(answers.map(({ body }) => body.data.expires_at)).toEqual(Array(16).fill(expected))
    expect(await gate.count('AgentTokenRenewed', gateSessionId)).toBe(1)
  })

  test('verifies while nothing can be written, and renews later', async () => {
    const { token } = await gate.account(owner)
    const end = gate.now.ms + 90 * day
    gate.now.ms += 2 * day
    gate.outage.isOn = true
    const during = await verify(token).finally(() => {
      gate.outage.isOn = false
    })
    expect(during.body.data).toMatchObject({ valid: true, expires_at: iso(end) })
    expect((await verify(token)).body.data.expires_at).toBe(iso(gate.now.ms + 90 * day))
  })

  test('takes 60 questions a minute about one token', async () => {
    const { token } = await gate.account(owner)
    const answers = await Promise.all(Array.from({ length: 61 }, () => verify(token)))
    const refused = answers.filter(({ status }) => status !== 200)
    expect(refused).toHaveLength(1)
    expect(refused[0]).toMatchObject({
      status: 429,
      body: { error: { code: 'gate.rate_limit', retryable: true } },
    })
    expect(Number(refused[0]?.headers['retry-after'])).toBeGreaterThan(0)
    // Others have limits of their own.
    expect((await verify((await gate.account(owner)).token)).status).toBe(200)
    expect((await verify(token, await gate.owner())).status).toBe(200)
  })
})

describe('revoke', () => {
  test('ends a token at once and for good', async () => {
    const { token, gateSessionId } = await gate.account(owner)
    const key = await keyWith(['gate:agent_tokens:revoke'])
    const answer = await revoke(token, key)
    expect(answer).toMatchObject({ status: 204, body: undefined })
    expect(answer.headers['cache-control']).toBe('no-store')
    expect((await verify(token)).body.data).toEqual({ valid: false })
    expect((await revoke(token, key)).status).toBe(204)
    expect(await gate.count('AgentTokenRevoked', gateSessionId)).toBe(1)
  })

  test('does not find what is unknown or of others', async () => {
    const account = await gate.account(owner)
    const others = [await gate.owner(), await keyWith(['*'], 'test')]
    const answers = [
      ...(await Promise.all(others.map((other) => revoke(account.token, other)))),
      await revoke(mistyped(account)),
      await revoke(`${account.token}\u0000`),
      await revoke(generateToken('agt', randomBytes)),
    ]
    for (const { status, body } of answers) {
      expect({ status, code: body.error.code }).toEqual({ status: 404, code: 'request.not_found' })
    }
    expect((await verify(account.token)).body.data.valid).toBe(true)
  })

  test('of many at once does it once', async () => {
    const { token, gateSessionId } = await gate.account(owner)
    const answers = await Promise.all(Array.from({ length: 16 }, () => revoke(token)))
    expect(answers.map(({ status }) => status)).toEqual(Array(16).fill(204))
    expect(await gate.count('AgentTokenRevoked', gateSessionId)).toBe(1)
  })

  test('is not undone by a renewal that happens at the same time', async () => {
    const { token } = await gate.account(owner)
    gate.now.ms += 2 * day
    await Promise.all([...Array.from({ length: 8 }, () => verify(token)), revoke(token)])
    expect((await verify(token)).body.data).toEqual({ valid: false })
    expect(await gate.stored(token)).toMatchObject({ status: 'revoked' })
  })

  test('refuses what does not fit, and a key without the scope', async () => {
    const { token } = await gate.account(owner)
    const answer = await gate.post('agent-tokens/revoke', { key: owner.secretKey, body: { token } })
    const details = { parameter_set: 'gate_agent_token_revoke' }
    expect(answer).toMatchObject({
      status: 422,
      body: { error: { code: 'gate.validation_failed', details } },
    })
    expect((await revoke(token, await keyWith(['gate:agent_tokens:verify']))).status).toBe(403)
  })
})

test('a suspended organization cannot ask about its tokens', async () => {
  const other = await gate.owner()
  const { token } = await gate.account(other)
  const { organizationId } = other
  await setStatus(gate.deps, organizationId, 'suspended')
  expect((await verify(token, other)).status).toBe(403)
})
