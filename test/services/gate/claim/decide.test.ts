import { describe, expect, test } from 'vitest'
import type { GateSessionRow } from '../../../../projections/gate/tables.ts'
import { decideApprovalStart } from '../../../../services/gate/approval/decide.ts'
import { decideClaim } from '../../../../services/gate/claim/decide.ts'
import {
  decideClosedPage,
  decideDecline,
  decideSessionExpiry,
} from '../../../../services/gate/signup/decide.ts'
import {
  claimingSignup,
  minute,
  now as opened,
  pendingSignup,
  proof,
  startedSignup,
} from '../../../support/gate-rows.ts'
import { outcome, after as sessionAfter, start } from '../signup/given.ts'

const now = opened + 5 * minute
const supported = { claim: 'supported' } as const
const unsure = { ...proof, verdict: 'inconclusive' } as const

interface Approved {
  session?: GateSessionRow
  isClaimRequired?: boolean
  isSameNetwork?: boolean | null
  by?: { verdict: 'human' | 'inconclusive' }
}

function approval({
  session = pendingSignup(supported),
  isClaimRequired = false,
  ...given
}: Approved) {
  const { isSameNetwork = true, by = proof } = given
  return decideApprovalStart(
    { session, endpointId: null, isClaimRequired },
    { ...start, proof: { ...proof, ...by }, isSameNetwork, now },
  )
}

describe('an approval', () => {
  test.each<[string, Approved, string]>([
    ['by a person in the agent’s network', {}, 'GateSessionApprovalStarted'],
    ['from another network', { isSameNetwork: false }, 'GateSessionClaimRequested'],
    ['from nobody knows where', { isSameNetwork: null }, 'GateSessionClaimRequested'],
    ['that may be a program’s', { by: unsure }, 'GateSessionClaimRequested'],
    ['at a service that demands it', { isClaimRequired: true }, 'GateSessionClaimRequested'],
    [
      'of an agent that cannot be told a code, whatever speaks for one',
      { session: pendingSignup(), isSameNetwork: false, by: unsure, isClaimRequired: true },
      'GateSessionApprovalStarted',
    ],
    [
      'while the code is waited for',
      { session: claimingSignup({ approve_token_hash: 'x' }) },
      'nothing',
    ],
  ])('%s', (_name, given, expected) => {
    expect(outcome(() => approval(given))).toBe(expected)
  })
})

describe('a code that is told', () => {
  const told = (session: GateSessionRow, isCode: boolean, at = now) =>
    decideClaim({ session, endpointId: 'we_1', isCode }, { now: at })

  test('the right one starts the approval, and changes nothing once more', () => {
    const events = told(claimingSignup(), true)
    expect(events.map(({ event }) => event)).toEqual([
      {
        type: 'GateSessionClaimed',
        data: {
          gate_session_id: claimingSignup().id,
          gate_account_id: claimingSignup().gate_account_id,
          webhook_endpoint_id: 'we_1',
          claimed_at: now,
        },
      },
    ])
    const claimed = sessionAfter(claimingSignup(), events)
    expect(claimed).toMatchObject({ status: 'pending', claim: 'claimed', approval_started_at: now })
    expect(told(claimed, true)).toEqual([])
    expect(told({ ...claimed, status: 'approved' }, true)).toEqual([])
  })

  test('four wrong ones are counted, and the fifth rejects the signup', () => {
    let session = claimingSignup()
    const said = Array.from({ length: 5 }, () => {
      const events = told(session, false)
      session = sessionAfter(session, events)
      return outcome(() => events)
    })
    expect(said).toEqual([
      ...Array(4).fill('GateSessionClaimFailed'),
      'GateSessionClaimFailed GateSessionRejected',
    ])
    expect(session).toMatchObject({
      status: 'rejected',
      rejection: 'claim_failed',
      claim_failures: 5,
    })
    expect(outcome(() => told(session, true))).toBe('gate.session_already_resolved')
  })

  test.each<[string, GateSessionRow, string]>([
    ['before a person has approved', pendingSignup(supported), 'gate.claim_code_invalid'],
    ['after the time is over', claimingSignup({ expires_at: now }), 'gate.session_expired'],
    ['after it has expired', claimingSignup({ status: 'expired' }), 'gate.session_expired'],
    [
      'after it was declined',
      claimingSignup({ status: 'rejected' }),
      'gate.session_already_resolved',
    ],
    ['of a signup that goes on without', startedSignup(), 'nothing'],
  ])('%s', (_name, session, expected) => {
    expect(outcome(() => told(session, true))).toBe(expected)
  })
})

test('while the code is waited for it can be declined and expires, and its page may be closed', () => {
  expect(outcome(() => decideDecline(claimingSignup(), { now }))).toBe('GateSessionRejected')
  const over = claimingSignup().expires_at
  expect(outcome(() => decideSessionExpiry(claimingSignup(), { now: over }))).toBe(
    'GateSessionExpired',
  )
  expect(decideClosedPage({ session: claimingSignup(), closingForMs: minute }, { now })).toEqual([])
})
