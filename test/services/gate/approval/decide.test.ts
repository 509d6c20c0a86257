import { describe, expect, test } from 'vitest'
import type { GateSessionRow } from '../../../../projections/gate/tables.ts'
import {
  decideApproval,
  decideApprovalFailure,
  decideApprovalStart,
} from '../../../../services/gate/approval/decide.ts'
import {
  approval,
  approvedSignup,
  claimingSignup,
  credentials,
  eventsOf,
  minute,
  now as opened,
  outcome,
  pendingSignup,
  proof,
  proven,
  startedSignup,
} from '../fixtures.ts'

const now = opened + 5 * minute
const pending = pendingSignup()
const { id: gate_session_id } = pending
const { gateAccountId: gate_account_id } = approval
const decided = { gate_session_id, gate_account_id }

type State = Partial<Parameters<typeof decideApprovalStart>[0]>
type Command = Partial<Parameters<typeof decideApprovalStart>[1]>
const start = (state: State = {}, changes: Command = {}) =>
  decideApprovalStart(
    { session: pending, endpointId: 'we_1', isClaimRequired: false, ...state },
    { ...approval, now, ...changes },
  )

describe('start of an approval', () => {
  test('records the endpoint and the proof', () => {
    const [decision, ...others] = start()
    const data = { ...decided, ...proven, webhook_endpoint_id: 'we_1', started_at: now }
    expect(others).toEqual([])
    expect(decision).toMatchObject({
      event: { type: 'GateSessionApprovalStarted', data },
      meta: { organizationId: pending.organization_id, environment: 'live', time: now },
    })
  })

  test('records each accepted variable once', () => {
    const acceptedEnvVars = ['ACME_KEY', 'ACME_ID', 'ACME_KEY']
    const data = { ...decided, env_vars: ['ACME_KEY', 'ACME_ID'], accepted_at: now }
    const [, ...accepted] = eventsOf(start({}, { acceptedEnvVars }))
    expect(accepted).toEqual([{ type: 'GateVariablesAccepted', data }])
  })

  const supported = { session: pendingSignup({ claim: 'supported' }) }
  const unsure = { proof: { ...proof, verdict: 'inconclusive' as const } }
  const claim = 'GateSessionClaimRequested'
  test.each<[string, State, Command, string]>([
    ["from the agent's network", supported, {}, 'GateSessionApprovalStarted'],
    ['from another network', supported, { isSameNetwork: false }, claim],
    ['from an unknown network', supported, { isSameNetwork: null }, claim],
    ['with an inconclusive verdict', supported, unsure, claim],
    ['at a service that requires it', { ...supported, isClaimRequired: true }, {}, claim],
    [
      'by an agent that does not support it',
      { isClaimRequired: true },
      { ...unsure, isSameNetwork: false },
      'GateSessionApprovalStarted',
    ],
  ])('requests a claim if needed: %s', (_name, state, changes, expected) => {
    expect(outcome(() => start(state, changes))).toBe(expected)
  })

  const another = { approve_token_hash: 'other' }
  const resolved = 'gate.session_already_resolved'
  test.each<[string, GateSessionRow | undefined, string]>([
    ['has started', startedSignup(), 'nothing'],
    ['has started and is past its time', startedSignup({ expires_at: now - 1 }), 'nothing'],
    ['was approved with this token', approvedSignup(), 'nothing'],
    ['failed', startedSignup({ status: 'rejected' }), 'nothing'],
    ['was started with another token of the page', startedSignup(another), 'nothing'],
    ['waits for the claim code', claimingSignup(another), 'nothing'],
    ['does not exist', undefined, 'gate.session_not_found'],
    ['is past its time', pendingSignup({ expires_at: now }), 'gate.session_expired'],
    ['has expired', pendingSignup({ status: 'expired' }), 'gate.session_expired'],
    ['was declined', pendingSignup({ status: 'rejected' }), resolved],
    ['was approved with another token', { ...approvedSignup(), ...another }, resolved],
  ])('for a signup that %s', (_name, session, expected) => {
    expect(outcome(() => start({ session }))).toBe(expected)
  })
})

describe('end of an approval', () => {
  const failure = { problem: 'The service answered with status 400.', now }

  test('with credentials: approves the session in one event', () => {
    const data = { ...decided, ...credentials }
    expect(eventsOf(decideApproval(startedSignup(), credentials))).toEqual([
      { type: 'GateSessionApproved', data },
    ])
  })

  test('without credentials: rejects the session with the problem', () => {
    const { problem } = failure
    const data = { gate_session_id, reason: 'integrator_failed', problem, rejected_at: now }
    expect(eventsOf(decideApprovalFailure(startedSignup(), failure))).toEqual([
      { type: 'GateSessionRejected', data },
    ])
  })

  test("accepts a response that arrives after the session's expiry", () => {
    expect(decideApproval(startedSignup({ expires_at: now - 1 }), credentials)).toHaveLength(1)
  })

  test.each([
    ['unknown', undefined],
    ['not started', pending],
    ['waiting for the code', claimingSignup()],
    ['approved', approvedSignup()],
    ['rejected', startedSignup({ status: 'rejected' })],
    ['a login', startedSignup({ kind: 'login' })],
  ])('returns no event for a session that is %s', (_name, session) => {
    expect(decideApproval(session, credentials)).toEqual([])
    expect(decideApprovalFailure(session, failure)).toEqual([])
  })
})
