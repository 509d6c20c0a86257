import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { isToken, isTokenOf } from '../../../../infra/crypto/tokens.ts'
import { loginCode, redirectUrl } from '../../../../services/gate/login/commands.ts'
import { decideLoginApproval } from '../../../../services/gate/login/decide.ts'
import { codeTtlMs, sessionTtlMs } from '../../../../services/gate/sessions.ts'
import { approvedLogin, login, now } from '../../../support/gate-rows.ts'
import { eventsOf, keyring, refusalOf } from '../accounts/given.ts'

const page = { approve_token_hash: 'approve', issued_at: now, closed_at: null }
const command = {
  approveTokenHash: 'approve',
  approveTokenHashes: ['approve', 'approve under an older master key'],
  proof: { verdict: 'human', riskScore: 7, sessionId: 'sid_1', decisionId: 'evt_1' },
  codeHash: 'code',
  now: now + 1000,
}
const codeOf = (decide: () => unknown) => refusalOf(decide).code

test('given a login, when its newest token approves, then a code may be used for five minutes', () => {
  expect(eventsOf(decideLoginApproval({ session: login, page }, command))).toEqual([
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

test('given a page from before the master keys were rotated, then its token still approves', () => {
  const older = { ...page, approve_token_hash: 'approve under an older master key' }
  expect(decideLoginApproval({ session: login, page: older }, command)).toHaveLength(1)
})

test('given a login, when a token approves that is not the newest of its page, then it is refused', () => {
  for (const state of [undefined, { ...page, approve_token_hash: 'newer' }]) {
    expect(refusalOf(() => decideLoginApproval({ session: login, page: state }, command))).toEqual({
      status: 403,
      code: 'gate.approve_token_invalid',
    })
  }
})

test('given no login, or one that has ended, then it is refused whatever the token', () => {
  const refused = (session: typeof login | undefined, at = now) =>
    codeOf(() => decideLoginApproval({ session, page }, { ...command, now: at }))
  expect(refused(undefined)).toBe('gate.session_not_found')
  expect(refused({ ...login, status: 'expired' })).toBe('gate.session_expired')
  expect(refused(login, now + sessionTtlMs)).toBe('gate.session_expired')
  expect(refused({ ...login, status: 'rejected' })).toBe('gate.session_already_resolved')
})

test('given an approved login, when the token that approved asks again, then nothing happens', () => {
  expect(decideLoginApproval({ session: approvedLogin, page }, command)).toEqual([])
  // Even after the page was loaded again.
  expect(
    decideLoginApproval({ session: approvedLogin, page: { ...page, approve_token_hash: 'newer' } }, command),
  ).toEqual([])
})

test('given an approved login, when another token approves, then it is resolved', () => {
  const other = { ...command, approveTokenHash: 'other', approveTokenHashes: ['other'] }
  const state = { session: approvedLogin, page: { ...page, approve_token_hash: 'other' } }
  expect(codeOf(() => decideLoginApproval(state, other))).toBe('gate.session_already_resolved')
})

test('given an approved login whose code is gone, when its token asks again, then it is told why there is none', () => {
  const asked = (session: typeof login, at = now) =>
    codeOf(() => decideLoginApproval({ session, page }, { ...command, now: at }))
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
  expect(at('https://acme.example/auth?code=old&a=1')).toBe('https://acme.example/auth?a=1&code=gtcode_x')
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
