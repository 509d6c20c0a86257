import { describe, expect, test } from 'vitest'
import type { GateSessionRow } from '../../../../projections/gate/tables.ts'
import {
  decideApproval,
  decideApprovalFailure,
  decideApprovalStart,
  isStarted,
} from '../../../../services/gate/approval/decide.ts'
import {
  minute,
  now as opened,
  pendingSignup,
  proof,
  startedSignup,
} from '../../../support/gate-rows.ts'

const now = opened + 5 * minute
const gateAccountId = `gacct_${'2'.repeat(26)}` as const
const endpointId = `we_${'1'.repeat(32)}`
const command = {
  approveTokenHashes: ['approve', 'approve-under-an-older-key'] as [string, ...string[]],
  proof,
  gateAccountId,
  isSameNetwork: true,
  claimCodeHash: 'claim',
  now,
}
const given = (session: GateSessionRow | undefined) => ({
  session,
  endpointId,
  isClaimRequired: false,
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

  test('says which variables the person lets into the env file, once each', () => {
    const accepting = { ...command, acceptedEnvVars: ['ACME_KEY', 'ACME_ID', 'ACME_KEY'] }
    const [, accepted, ...others] = decideApprovalStart(given(pendingSignup()), accepting)
    expect(others).toEqual([])
    expect(accepted?.event).toEqual({
      type: 'GateVariablesAccepted',
      data: {
        gate_session_id: pendingSignup().id,
        gate_account_id: gateAccountId,
        env_vars: ['ACME_KEY', 'ACME_ID'],
        accepted_at: now,
      },
    })
    expect(decideApprovalStart(given(startedSignup()), accepting)).toEqual([])
  })

  test('of the built-in service asks nobody', () => {
    const session = pendingSignup({ organization_id: null })
    const [decision] = decideApprovalStart({ ...given(session), endpointId: null }, command)
    expect(decision).toMatchObject({
      event: { data: { webhook_endpoint_id: null } },
      meta: { organizationId: null },
    })
  })

  test.each([
    ['has started', startedSignup()],
    ['has started, and the time is over', startedSignup({ expires_at: now - 1 })],
    ['was approved', startedSignup({ status: 'approved' })],
    ['came to nothing', startedSignup({ status: 'rejected' })],
  ])('nothing happens when it %s by this token', (_name, session) => {
    expect(decideApprovalStart(given(session), command)).toEqual([])
  })

  test('nothing happens when another token of the page started it', () => {
    const session = startedSignup({ approve_token_hash: 'other' })
    expect(decideApprovalStart(given(session), command)).toEqual([])
  })

  test.each([
    ['gate.session_not_found', undefined],
    ['gate.session_expired', pendingSignup({ expires_at: now })],
    ['gate.session_expired', pendingSignup({ status: 'expired' })],
    ['gate.session_already_resolved', pendingSignup({ status: 'rejected' })],
    [
      'gate.session_already_resolved',
      startedSignup({ status: 'approved', approve_token_hash: 'other' }),
    ],
  ])('%s', (refusal, session) => {
    expect(() => decideApprovalStart(given(session), command)).toThrow(code(refusal))
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
