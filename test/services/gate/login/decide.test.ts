import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { isToken, isTokenOf } from '../../../../infra/crypto/tokens.ts'
import { loginCode, redirectUrl } from '../../../../services/gate/login/commands.ts'
import {
  decideCodeConsumption,
  decideLoginApproval,
  decideLoginOpening,
  type LoginOpeningState,
} from '../../../../services/gate/login/decide.ts'
import {
  type RegisteredService as Service,
  systemService,
} from '../../../../services/gate/registry/registered.ts'
import { codeTtlMs, sessionTtlMs } from '../../../../services/gate/sessions.ts'
import { approvedLogin, login, now, token } from '../../../support/gate-rows.ts'
import { organization, organizationId } from '../../../support/organization-rows.ts'
import { eventsOf, keyring, refusalOf, scope, strangers } from '../accounts/given.ts'

const builtIn = systemService('https://tidegate.example')
const service: Service = {
  ...builtIn,
  id: 'acme',
  organization_id: organizationId,
  definition: { ...builtIn.definition, dashboard_login_url: 'https://acme.example/auth/gate' },
}
const requester = { requested_ip: '203.0.113.9', requested_user_agent: 'agent' }
const opening = { gateSessionId: login.id, requester, confirmationCode: 'K4-7M9', now }
const state = { token, service, organization, session: undefined }
const changed = (definition: Partial<Service['definition']>): Service => ({
  ...service,
  definition: { ...service.definition, ...definition },
})
const revoked = { ...token, status: 'revoked' } as const

test('given a good token, when a login is opened, then it waits 15 minutes for the account of the token', () => {
  expect(eventsOf(decideLoginOpening(state, opening))).toEqual([
    {
      type: 'LoginSessionOpened',
      data: {
        gate_session_id: login.id,
        service_id: 'acme',
        organization_id: organizationId,
        environment: 'live',
        gate_account_id: token.gate_account_id,
        account_name: 'Robin',
        ...requester,
        opened_at: now,
        expires_at: now + sessionTtlMs,
        confirmation_code: 'K4-7M9',
        dashboard_login_url: 'https://acme.example/auth/gate',
      },
    },
  ])
})

test('given the login is there, when the command is repeated, then nothing happens', () => {
  expect(decideLoginOpening({ ...state, session: login }, opening)).toEqual([])
})

test('given a token that is not good, or of another service, then it is no key to this one', () => {
  for (const bad of [
    undefined,
    revoked,
    { ...token, expires_at: now },
    { ...token, service_id: 'other' },
  ]) {
    expect(refusalOf(() => decideLoginOpening({ ...state, token: bad }, opening))).toEqual({
      status: 401,
      code: 'auth.invalid_api_key',
    })
  }
  // Whatever was made before.
  const repeated = { ...state, session: login, token: revoked }
  expect(refusalOf(() => decideLoginOpening(repeated, opening)).status).toBe(401)
})

test('given a service that is not open, or has no dashboard, then it is not found', () => {
  const closed: Pick<LoginOpeningState, 'service' | 'organization'>[] = [
    { organization, service: undefined },
    { organization, service: { ...service, status: 'disabled' } },
    { organization, service: changed({ discoverable: false }) },
    { organization, service: changed({ dashboard_login_url: null }) },
    { organization, service: builtIn },
    { service, organization: { ...organization, status: 'suspended' } },
  ]
  for (const part of closed) {
    expect(refusalOf(() => decideLoginOpening({ ...state, ...part }, opening))).toEqual({
      status: 404,
      code: 'request.not_found',
    })
  }
})

const command = { ...scope, consumptionId: 'this', now: now + 1 }
const approved = { session: approvedLogin, token }
const consumed = { ...approvedLogin, code: 'consumed', code_consumption_id: 'this' } as const

test('given a code, when it is used, then it is used up', () => {
  expect(eventsOf(decideCodeConsumption(approved, command))).toEqual([
    {
      type: 'LoginCodeConsumed',
      data: { gate_session_id: login.id, consumption_id: 'this', consumed_at: now + 1 },
    },
  ])
})

test('given a code that was used, when that request is repeated, then nothing happens; by another, then it is told', () => {
  expect(decideCodeConsumption({ session: consumed, token }, command)).toEqual([])
  const later = { ...command, now: now + codeTtlMs }
  expect(decideCodeConsumption({ session: consumed, token: revoked }, later)).toEqual([])
  expect(
    refusalOf(() =>
      decideCodeConsumption({ session: consumed, token }, { ...command, consumptionId: 'other' }),
    ),
  ).toEqual({
    status: 410,
    code: 'gate.session_already_resolved',
  })
})

test("given a code that is old, another's or of nobody, or whose agent was shut out, then it has expired", () => {
  const expired = [
    [{ session: undefined, token }, command],
    [{ session: login, token }, command],
    [{ session: { ...approvedLogin, code: 'expired' }, token }, command],
    [approved, { ...command, now: now + codeTtlMs }],
    [{ session: approvedLogin, token: revoked }, command],
    [{ session: approvedLogin, token: undefined }, command],
    ...strangers.map((stranger) => [approved, { ...command, ...stranger }] as const),
    ...strangers.map(
      (stranger) =>
        [
          { session: consumed, token },
          { ...command, ...stranger },
        ] as const,
    ),
  ] as const
  for (const [given, when] of expired) {
    expect(refusalOf(() => decideCodeConsumption(given, when))).toEqual({
      status: 410,
      code: 'gate.session_expired',
    })
  }
})

const approval = {
  approveTokenHashes: ['approve', 'approve under an older master key'] as [string, ...string[]],
  proof: { verdict: 'human' as const, riskScore: 7, sessionId: 'sid_1', decisionId: 'evt_1' },
  codeHash: 'code',
  now: now + 1000,
}
const codeOf = (decide: () => unknown) => refusalOf(decide).code

test('given a login, when a token of its page approves, then a code may be used for five minutes', () => {
  expect(eventsOf(decideLoginApproval(login, approval))).toEqual([
    {
      type: 'LoginSessionApproved',
      data: {
        gate_session_id: login.id,
        code_hash: 'code',
        code_expires_at: now + 1000 + codeTtlMs,
        approve_token_hash: 'approve',
        verdict: 'human',
        risk_score: 7,
        proof_session_id: 'sid_1',
        proof_decision_id: 'evt_1',
        approved_at: now + 1000,
      },
    },
  ])
})

test('given no login, or one that has ended, then it is refused whatever the token', () => {
  const refused = (session: typeof login | undefined, at = now) =>
    codeOf(() => decideLoginApproval(session, { ...approval, now: at }))
  expect(refused(undefined)).toBe('gate.session_not_found')
  expect(refused({ ...login, status: 'expired' })).toBe('gate.session_expired')
  expect(refused(login, now + sessionTtlMs)).toBe('gate.session_expired')
  expect(refused({ ...login, status: 'rejected' })).toBe('gate.session_already_resolved')
})

test('given an approved login, when the token that approved asks again, then nothing happens', () => {
  expect(decideLoginApproval(approvedLogin, approval)).toEqual([])
})

test('given an approved login, when another token approves, then it is resolved', () => {
  const other = { ...approval, approveTokenHashes: ['other'] as [string, ...string[]] }
  expect(codeOf(() => decideLoginApproval(approvedLogin, other))).toBe(
    'gate.session_already_resolved',
  )
})

test('given an approved login whose code is gone, when its token asks again, then it is told why there is none', () => {
  const asked = (session: typeof login, at = now) =>
    codeOf(() => decideLoginApproval(session, { ...approval, now: at }))
  expect(asked({ ...approvedLogin, code: 'consumed' })).toBe('gate.session_already_resolved')
  expect(asked({ ...approvedLogin, code: 'expired' })).toBe('gate.session_expired')
  expect(asked(approvedLogin, now + codeTtlMs)).toBe('gate.session_expired')
})

test('a code follows from session and approve token, and only its hash is needed to know it', () => {
  const asked = { keyring, gateSessionId: login.id, approveToken: 'gtapr_a' }
  const { code, hash } = loginCode(asked)
  expect(isToken('gtcode', code)).toBe(true)
  expect(isTokenOf(keyring, { token: code, hash })).toBe(true)
  expect(loginCode({ ...asked, codeHash: null })).toEqual({ code, hash })
  const others = [
    loginCode({ ...asked, approveToken: 'gtapr_b' }),
    loginCode({ ...asked, gateSessionId: `gate_${'6'.repeat(26)}` }),
    loginCode({ ...asked, keyring: createKeyring(randomBytes(32).toString('base64')) }),
  ]
  expect(new Set([code, ...others.map((other) => other.code)]).size).toBe(4)
})

test('a code is told again after the master keys were rotated, as long as the one that made it is known', () => {
  const [older, newer] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]
  const asked = { gateSessionId: login.id, approveToken: 'gtapr_a' }
  const first = loginCode({ ...asked, keyring: createKeyring(older) })
  const rotated = createKeyring(`${newer},${older}`)
  expect(loginCode({ ...asked, keyring: rotated, codeHash: first.hash })).toEqual(first)
  expect(isTokenOf(rotated, { token: first.code, hash: first.hash })).toBe(true)
})

test('a redirect has the code in its query and keeps the rest of the address', () => {
  const code = 'gtcode_x'
  const at = (url: string) => redirectUrl(url, code)
  expect(at('https://acme.example/auth/gate')).toBe('https://acme.example/auth/gate?code=gtcode_x')
  expect(at('https://acme.example/auth?a=%20b+c#top')).toBe(
    'https://acme.example/auth?a=%20b+c&code=gtcode_x#top',
  )
  expect(at('https://acme.example/auth?code=old&a=1')).toBe(
    'https://acme.example/auth?a=1&code=gtcode_x',
  )
  fc.assert(
    fc.property(fc.webUrl({ withQueryParameters: true, withFragments: true }), (url) => {
      const [from, to] = [new URL(url), new URL(at(url))]
      expect(to.searchParams.getAll('code')).toEqual([code])
      from.searchParams.delete('code')
      to.searchParams.delete('code')
      expect([...to.searchParams]).toEqual([...from.searchParams])
      expect([to.origin, to.pathname, to.hash]).toEqual([from.origin, from.pathname, from.hash])
    }),
    { numRuns: 40 },
  )
})
