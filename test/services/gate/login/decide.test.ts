import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { isToken, matchesTokenHash } from '../../../../infra/crypto/tokens.ts'
import { deriveLoginCode, loginRedirectUrl } from '../../../../services/gate/login/commands.ts'
import {
  decideCodeConsumption,
  decideLoginApproval,
  decideLoginOpening,
} from '../../../../services/gate/login/decide.ts'
import { systemService } from '../../../../services/gate/registry/registered-services.ts'
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
} from '../fixtures.ts'

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
  ['without a token', { token: undefined }, noKey],
  ['with a revoked token', { token: revoked }, noKey],
  ['with an expired token', { token: { ...token, expires_at: now } }, noKey],
  ['with a token of another service', { token: { ...token, service_id: 'other' } }, noKey],
  ['a second time, with a token revoked since', { session: login, token: revoked }, noKey],
  ['for an unknown service', { service: undefined }, notFound],
  ['for a disabled service', { service: { ...service, status: 'disabled' } }, notFound],
  [
    'for a service that is not discoverable',
    { service: { ...service, definition: { ...service.definition, discoverable: false } } },
    notFound,
  ],
  ['for a service without a dashboard', { service: listed }, notFound],
  ['for the built-in service', { service: builtIn }, notFound],
  [
    'for a service of a suspended organization',
    { organization: { ...organization, status: 'suspended' } },
    notFound,
  ],
])('opening a login %s', (_how, changes, expected) => {
  expect(outcome(() => open(changes))).toBe(expected)
})

const consumption = { ...scope, consumptionId: 'this', now: now + 1 }
const approved = { session: approvedLogin, token }
const consumed = {
  session: { ...approvedLogin, code: 'consumed', code_consumption_id: 'this' } as const,
  token,
}

test('a consumed code cannot be used again', () => {
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
  [
    'used by the same request, after its expiry and with a revoked token',
    { ...consumed, token: revoked },
    late,
    'nothing',
  ],
  ['used by another request', consumed, other, used],
  ['without a login', { session: undefined, token }, {}, over],
  ['of an unapproved login', { session: login, token }, {}, over],
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

test('after the approval by a token of its page, a code can be used for five minutes', () => {
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
  ['without a session', undefined, {}, 'gate.session_not_found'],
  ['an expired session', { ...login, status: 'expired' }, {}, over],
  ['a session past its time', login, { now: now + sessionTtlMs }, over],
  ['a declined session', { ...login, status: 'rejected' }, {}, used],
  ['a session approved with this token', approvedLogin, {}, 'nothing'],
  ['a session approved with another token', approvedLogin, another, used],
  ['a session whose code was used', { ...approvedLogin, code: 'consumed' }, {}, used],
  ['a session whose code has expired', { ...approvedLogin, code: 'expired' }, {}, over],
  ['a session whose code is past its time', approvedLogin, late, over],
])('approving a login: %s', (_which, session, changes, expected) => {
  expect(outcome(() => decideLoginApproval(session, { ...loginApproval, ...changes }))).toBe(
    expected,
  )
})

const masterKey = () => randomBytes(32).toString('base64')

test('a code is derived from session and approve token, and only its hash is needed to recognize it', () => {
  const keyring = createKeyring(masterKey())
  const asked = { keyring, gateSessionId: login.id, approveToken: 'gtapr_a' }
  const { code, hash } = deriveLoginCode(asked)
  expect(isToken('gtcode', code)).toBe(true)
  expect(matchesTokenHash(keyring, { token: code, hash })).toBe(true)
  expect(deriveLoginCode({ ...asked, codeHash: null })).toEqual({ code, hash })
  const others = [
    deriveLoginCode({ ...asked, approveToken: 'gtapr_b' }),
    deriveLoginCode({ ...asked, gateSessionId: `gate_${'6'.repeat(26)}` }),
    deriveLoginCode({ ...asked, keyring: createKeyring(masterKey()) }),
  ]
  expect(new Set([code, ...others.map((made) => made.code)]).size).toBe(4)
})

test('the same code is returned after a rotation of the master keys, as long as its key is available', () => {
  const older = masterKey()
  const asked = { gateSessionId: login.id, approveToken: 'gtapr_a' }
  const first = deriveLoginCode({ ...asked, keyring: createKeyring(older) })
  const rotated = createKeyring(`${masterKey()},${older}`)
  expect(deriveLoginCode({ ...asked, keyring: rotated, codeHash: first.hash })).toEqual(first)
  expect(matchesTokenHash(rotated, { token: first.code, hash: first.hash })).toBe(true)
})

test('a redirect has the code in its query and keeps the rest of the URL', () => {
  const code = 'gtcode_x'
  const at = (url: string) => loginRedirectUrl(url, code)
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
