import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { sealToken } from '../../../../infra/wire/sealed-token.ts'
import type { GateSessionRow } from '../../../../projections/gate/tables.ts'
import {
  checkProof,
  decideApproval,
  decideApprovalFailure,
  decideApprovalStart,
  isStarted,
  openProof,
} from '../../../../services/gate/approval/decide.ts'
import {
  minute,
  now as opened,
  pageWith,
  pendingSignup,
  proof,
  startedSignup,
} from '../../../support/gate-rows.ts'

const now = opened + 5 * minute
const gateAccountId = `gacct_${'2'.repeat(26)}` as const
const endpointId = `we_${'1'.repeat(32)}`
const command = {
  approveTokenHash: 'approve',
  approveTokenHashes: ['approve', 'approve-under-an-older-key'],
  proof,
  gateAccountId,
  now,
}
const given = (session: GateSessionRow | undefined, page = 'approve') => ({
  session,
  page: pageWith(page),
  endpointId,
})
const code = (expected: string) => expect.objectContaining({ code: expected })

describe('start of an approval', () => {
  test('says who is asked, and what the person was taken for', () => {
    const [decision, ...others] = decideApprovalStart(given(pendingSignup()), command)
    expect(others).toEqual([])
    expect(decision?.event).toEqual({
      type: 'GateSessionApprovalStarted',
      data: {
        gate_session_id: pendingSignup().id,
        gate_account_id: gateAccountId,
        webhook_endpoint_id: endpointId,
        approve_token_hash: 'approve',
        verdict: 'human',
        risk_score: 12,
        proof_session_id: proof.sessionId,
        proof_decision_id: proof.decisionId,
        started_at: now,
      },
    })
    expect(decision?.meta).toMatchObject({
      organizationId: pendingSignup().organization_id,
      environment: 'live',
      time: now,
    })
  })

  test('of the built-in service asks nobody', () => {
    const session = pendingSignup({ organization_id: null })
    const [decision] = decideApprovalStart({ ...given(session), endpointId: null }, command)
    expect(decision).toMatchObject({
      event: { data: { webhook_endpoint_id: null } },
      meta: { organizationId: null },
    })
  })

  test('a token stored under an older master key is the same token', () => {
    expect(decideApprovalStart(given(pendingSignup(), 'approve-under-an-older-key'), command)).toHaveLength(1)
  })

  test.each([
    ['has started', startedSignup()],
    ['has started, and the time is over', startedSignup({ expires_at: now - 1 })],
    ['was approved', startedSignup({ status: 'approved' })],
    ['came to nothing', startedSignup({ status: 'rejected' })],
  ])('nothing happens when it %s by this token', (_name, session) => {
    expect(decideApprovalStart(given(session, 'newer'), command)).toEqual([])
  })

  test('nothing happens when another token started it and the page asks with its newest', () => {
    const session = startedSignup({ approve_token_hash: 'other' })
    expect(decideApprovalStart(given(session), command)).toEqual([])
  })

  test.each([
    ['gate.session_not_found', undefined, 'approve'],
    ['gate.session_expired', pendingSignup({ expires_at: now }), 'approve'],
    ['gate.session_expired', pendingSignup({ status: 'expired' }), 'approve'],
    ['gate.session_already_resolved', pendingSignup({ status: 'rejected' }), 'approve'],
    [
      'gate.session_already_resolved',
      startedSignup({ status: 'approved', approve_token_hash: 'other' }),
      'approve',
    ],
    ['gate.approve_token_invalid', pendingSignup(), 'newer'],
    ['gate.approve_token_invalid', startedSignup({ approve_token_hash: 'other' }), 'newer'],
  ])('%s', (refusal, session, page) => {
    expect(() => decideApprovalStart(given(session, page), command)).toThrow(code(refusal))
  })

  test('without a page that was ever opened there is no token', () => {
    const state = { session: pendingSignup(), page: undefined, endpointId }
    expect(() => decideApprovalStart(state, command)).toThrow(code('gate.approve_token_invalid'))
  })
})

const credentials = {
  delivery_sealed: Buffer.from('sealed'),
  delivery_expires_at: now + 1,
  ack_token_hash: 'ack',
  agent_token_hash: 'agent',
  agent_token_expires_at: now + 2,
  approved_at: now,
}
const failure = { problem: 'The service answered with status 400.', now }

describe('end of an approval', () => {
  test('with credentials: all in one event', () => {
    const [decision, ...others] = decideApproval(startedSignup(), credentials)
    expect(others).toEqual([])
    expect(decision?.event).toEqual({
      type: 'GateSessionApproved',
      data: {
        gate_session_id: startedSignup().id,
        gate_account_id: startedSignup().gate_account_id,
        ...credentials,
      },
    })
  })

  test('without: the session is rejected, with what was wrong', () => {
    const [decision, ...others] = decideApprovalFailure(startedSignup(), failure)
    expect(others).toEqual([])
    expect(decision?.event).toEqual({
      type: 'GateSessionRejected',
      data: {
        gate_session_id: startedSignup().id,
        reason: 'integrator_failed',
        problem: failure.problem,
        rejected_at: now,
      },
    })
  })

  test('an answer that came after the time of the session counts', () => {
    expect(decideApproval(startedSignup({ expires_at: now - 1 }), credentials)).toHaveLength(1)
  })

  test.each([
    ['unknown', undefined],
    ['not started', pendingSignup()],
    ['approved', startedSignup({ status: 'approved' })],
    ['rejected', startedSignup({ status: 'rejected' })],
    ['a login', pendingSignup({ kind: 'login' })],
  ])('nothing happens to a session that is %s', (_name, session) => {
    expect(isStarted(session)).toBe(false)
    expect(decideApproval(session, credentials)).toEqual([])
    expect(decideApprovalFailure(session, failure)).toEqual([])
  })
})

const hash = () => randomBytes(32).toString('hex')
const [ours, replaced] = [hash(), hash()]
const proofTime = Date.UTC(2026, 10, 21, 12)
const url = `https://gate.example/gate/consent/gate_${'0'.repeat(26)}`
const sessionId = `sid_${'0'.repeat(26)}`
const decisionId = `evt_${'0'.repeat(26)}`

interface Changes {
  decision?: object
  request?: object
  session_id?: unknown
}

const payload = ({ decision, request, ...rest }: Changes = {}) => ({
  object: 'session_verification',
  session_id: sessionId,
  decision: {
    event_id: decisionId,
    verdict: 'human',
    risk_score: 12,
    evaluated_at: new Date(proofTime - 1000).toISOString(),
    ...decision,
  },
  request: { url, ip_address: '192.0.2.1', ...request },
  ...rest,
})

const seal = (content: unknown, secretHashes = [ours]) =>
  sealToken({ payload: content, secretHashes, random: randomBytes })

const check = (changes: Changes = {}, rules = {}) =>
  checkProof(openProof(seal(payload(changes)), [ours]), { url, now: proofTime, ...rules })

const evaluated = (at: number) => ({ decision: { evaluated_at: new Date(at).toISOString() } })

test('a token of this page, just made, is a proof', () => {
  const proof = { verdict: 'human', riskScore: 12, sessionId, decisionId }
  expect(check()).toEqual(proof)
  expect(check({}, { sessionId })).toEqual(proof)
  expect(check({ decision: { verdict: 'inconclusive' } })).toEqual({ ...proof, verdict: 'inconclusive' })
})

test('a token that one of several secrets opens counts', () => {
  expect(openProof(seal(payload(), [replaced]), [ours, replaced])).toMatchObject({ session_id: sessionId })
})

describe('what is no proof', () => {
  const invalid = expect.objectContaining({ code: 'gate.svc_proof_invalid' })
  const tokens: [string, string][] = [
    ['nothing', ''],
    ['no token', 'x'.repeat(100)],
    ['a token for others', seal(payload(), [hash()])],
    ['a token that was changed', seal(payload()).replace(/.{8}$/, 'AAAAAAAA')],
    ['a token without a decision', seal({ session_id: sessionId, request: { url } })],
    ['a token without a page', seal({ ...payload(), request: undefined })],
    ['a token with another verdict', seal(payload({ decision: { verdict: 'fine' } }))],
    ['a score that is none', seal(payload({ decision: { risk_score: 101 } }))],
    ['a session id that is none', seal(payload({ session_id: 'sid_x' }))],
    ['a time that is none', seal(payload({ decision: { evaluated_at: 'today' } }))],
    ['a list', seal([])],
  ]
  test.each(tokens)('%s', (_name, token) => {
    expect(() => openProof(token, [ours])).toThrow(invalid)
  })
  test('anything while there is no secret', () => {
    expect(() => openProof(seal(payload()), [])).toThrow(invalid)
  })
  const claims: [string, Changes, object][] = [
    ['of the page of another signup', { request: { url: `${url.slice(0, -1)}1` } }, {}],
    ['of a page below it', { request: { url: `${url}/x` } }, {}],
    ['of no page', { request: { url: 'about:blank' } }, {}],
    ['of an address that is none', { request: { url: '' } }, {}],
    ['of another origin', { request: { url: url.replace('gate.example', 'evil.example') } }, {}],
    ['of another session than the request says', {}, { sessionId: `sid_${'1'.repeat(26)}` }],
    ['older than two minutes', evaluated(proofTime - 120_001), {}],
    ['from the future', evaluated(proofTime + 30_001), {}],
  ]
  test.each(claims)('one %s', (_name, changes, rules) => {
    expect(() => check(changes, rules)).toThrow(invalid)
  })
})

test('what was added to the address of the page does not matter', () => {
  for (const added of ['?utm_source=mail', '#top', '?'])
    expect(check({ request: { url: url + added } })).toMatchObject({ sessionId })
  expect(check({}, { url: url.replace('gate.example', 'Gate.Example:443') })).toMatchObject({ sessionId })
})

test('times are good up to their limits', () => {
  for (const at of [proofTime - 120_000, proofTime + 30_000])
    expect(check(evaluated(at))).toMatchObject({ sessionId })
})

test('a bot is told so, and only about a proof that is valid otherwise', () => {
  const bot = { decision: { verdict: 'bot', evaluated_at: new Date(proofTime).toISOString() } }
  expect(() => check(bot)).toThrow(expect.objectContaining({ code: 'gate.bot_detected' }))
  const elsewhere = { ...bot, request: { url: 'https://evil.example/' } }
  expect(() => check(elsewhere)).toThrow(expect.objectContaining({ code: 'gate.svc_proof_invalid' }))
})
