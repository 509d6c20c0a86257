import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { isToken, matchesTokenHash } from '../../../../infra/crypto/tokens.ts'
import { loginCodeOf, redirectUrl } from '../../../../services/gate/login/commands.ts'
import {
  decideCodeConsumption,
  decideLoginApproval,
  decideLoginOpening,
} from '../../../../services/gate/login/decide.ts'
import { systemService } from '../../../../services/gate/registry/registered.ts'
import { codeTtlMs, sessionTtlMs } from '../../../../services/gate/sessions.ts'
import { organization, organizationId } from '../../../support/organization-rows.ts'
import {
  approval,
  approvedLogin,
  eventsOf,
  service as listed,
  login,
  now,
  outcome,
  proven,
  scope,
  strangers,
  token,
} from '../given.ts'

const dashboard_login_url = 'https://acme.example/auth/gate'
const service = { ...listed, definition: { ...listed.definition, dashboard_login_url } }
const revoked = { ...token, status: 'revoked' } as const

const requester = { requested_ip: '203.0.113.9', requested_user_agent: 'agent' }
const opening = { gateSessionId: login.id, requester, confirmationCode: 'K4-7M9', now }
type Opening = Parameters<typeof decideLoginOpening>[0]
const open = (changes: Partial<Opening> = {}) =>
  decideLoginOpening({ token, service, organization, session: undefined, ...changes }, opening)

test('a login waits 15 minutes for the account of its token', () => {
  expect(eventsOf(open())).toEqual([
    {
      type: 'LoginSessionOpened',
      data: {
        gate_session_id: login.id,
        service_id: service.id,
        organization_id: organizationId,
        environment: 'live',
        gate_account_id: token.gate_account_id,
        account_name: 'Robin',
        ...requester,
        opened_at: now,
        expires_at: now + sessionTtlMs,
        confirmation_code: 'K4-7M9',
        dashboard_login_url,
      },
    },
  ])
})

const builtIn = systemService('https://tidegate.example')
const [noKey, notFound] = ['auth.invalid_api_key', 'request.not_found']
test.each<[string, Partial<Opening>, string]>([
  ['a second time', { session: login }, 'nothing'],
  ['by no token', { token: undefined }, noKey],
  ['by a revoked token', { token: revoked }, noKey],
  ['by a token that has expired', { token: { ...token, expires_at: now } }, noKey],
  ['by a token of another service', { token: { ...token, service_id: 'other' } }, noKey],
  ['a second time, by a token revoked since', { session: login, token: revoked }, noKey],
  ['to no service', { service: undefined }, notFound],
  ['to a disabled service', { service: { ...service, status: 'disabled' } }, notFound],
  [
    'to a hidden service',
    { service: { ...service, definition: { ...service.definition, discoverable: false } } },
    notFound,
  ],
  ['to a service without a dashboard', { service: listed }, notFound],
  ['to the built-in service', { service: builtIn }, notFound],
  ['to a suspended one', { organization: { ...organization, status: 'suspended' } }, notFound],
])('a login is opened %s', (_how, changes, expected) => {
  expect(outcome(() => open(changes))).toBe(expected)
})

const consumption = { ...scope, consumptionId: 'this', now: now + 1 }
const approved = { session: approvedLogin, token }
const consumed = {
  session: { ...approvedLogin, code: 'consumed', code_consumption_id: 'this' } as const,
  token,
}

test('a code that is used is used up', () => {
  const data = { gate_session_id: login.id, consumption_id: 'this', consumed_at: now + 1 }
  expect(eventsOf(decideCodeConsumption(approved, consumption))).toEqual([
    { type: 'LoginCodeConsumed', data },
  ])
})

const [other, late] = [{ consumptionId: 'other' }, { now: now + codeTtlMs }]
const [used, over] = ['gate.session_already_resolved', 'gate.session_expired']
type Consumption = Parameters<typeof decideCodeConsumption>
test.each<[string, Consumption[0], Partial<Consumption[1]>, string]>([
  ['used by the same request', consumed, {}, 'nothing'],
  ['used by it, later and by a revoked token', { ...consumed, token: revoked }, late, 'nothing'],
  ['used by another request', consumed, other, used],
  ['of nobody', { session: undefined, token }, {}, over],
  ['of a login that nobody approved', { session: login, token }, {}, over],
  ['that has expired', { session: { ...approvedLogin, code: 'expired' }, token }, {}, over],
  ['past its time', approved, late, over],
  ['of an agent whose token was revoked', { ...approved, token: revoked }, {}, over],
  ['of an agent without a token', { ...approved, token: undefined }, {}, over],
  ...strangers.flatMap((stranger): [string, Consumption[0], Partial<Consumption[1]>, string][] => [
    [`of others: ${stranger.environment}`, approved, stranger, over],
    [`of others, who used it: ${stranger.environment}`, consumed, stranger, over],
  ]),
])('a code %s', (_which, state, changes, expected) => {
  expect(outcome(() => decideCodeConsumption(state, { ...consumption, ...changes }))).toBe(expected)
})

const loginApproval = { ...approval, codeHash: 'code', now: now + 1000 }

test('once a token of its page approves, a code may be used for five minutes', () => {
  expect(eventsOf(decideLoginApproval(login, loginApproval))).toEqual([
    {
      type: 'LoginSessionApproved',
      data: {
        gate_session_id: login.id,
        code_hash: 'code',
        code_expires_at: now + 1000 + codeTtlMs,
        ...proven,
        approved_at: now + 1000,
      },
    },
  ])
})

type Approval = Partial<typeof loginApproval>
const another: Approval = { approveTokenHashes: ['other'] }
test.each<[string, typeof login | undefined, Approval, string]>([
  ['none', undefined, {}, 'gate.session_not_found'],
  ['one that has expired', { ...login, status: 'expired' }, {}, over],
  ['one past its time', login, { now: now + sessionTtlMs }, over],
  ['one that was declined', { ...login, status: 'rejected' }, {}, used],
  ['one that this token approved', approvedLogin, {}, 'nothing'],
  ['one that another token approved', approvedLogin, another, used],
  ['one whose code was used', { ...approvedLogin, code: 'consumed' }, {}, used],
  ['one whose code has expired', { ...approvedLogin, code: 'expired' }, {}, over],
  ['one whose code is past its time', approvedLogin, late, over],
])('a login is approved: %s', (_which, session, changes, expected) => {
  expect(outcome(() => decideLoginApproval(session, { ...loginApproval, ...changes }))).toBe(
    expected,
  )
})

const masterKey = () => randomBytes(32).toString('base64')

test('a code follows from session and approve token, and only its hash is needed to know it', () => {
  const keyring = createKeyring(masterKey())
  const asked = { keyring, gateSessionId: login.id, approveToken: 'gtapr_a' }
  const { code, hash } = loginCodeOf(asked)
  expect(isToken('gtcode', code)).toBe(true)
  expect(matchesTokenHash(keyring, { token: code, hash })).toBe(true)
  expect(loginCodeOf({ ...asked, codeHash: null })).toEqual({ code, hash })
  const others = [
    loginCodeOf({ ...asked, approveToken: 'gtapr_b' }),
    loginCodeOf({ ...asked, gateSessionId: `gate_${'6'.repeat(26)}` }),
    loginCodeOf({ ...asked, keyring: createKeyring(masterKey()) }),
  ]
  expect(new Set([code, ...others.map((made) => made.code)]).size).toBe(4)
})

test('a code is told again after the master keys were rotated, as long as the one that made it is known', () => {
  const older = masterKey()
  const asked = { gateSessionId: login.id, approveToken: 'gtapr_a' }
  const first = loginCodeOf({ ...asked, keyring: createKeyring(older) })
  const rotated = createKeyring(`${masterKey()},${older}`)
  expect(loginCodeOf({ ...asked, keyring: rotated, codeHash: first.hash })).toEqual(first)
  expect(matchesTokenHash(rotated, { token: first.code, hash: first.hash })).toBe(true)
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
